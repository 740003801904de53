// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor.h"

#include <ostream>

#include "tools/doctor/derive.h"
#include "tools/doctor/diff.h"
#include "tools/doctor/live/live.h"
#include "tools/doctor/options.h"
#include "tools/doctor/plan.h"
#include "tools/doctor/streams.h"
#include "tools/doctor/survey.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

int refuse(const Options& options, const std::string& message, std::ostream& out,
           std::ostream& err) {
  Report report;
  report.verdict = "unknown";
  report.summary = message;
  if (options.form == Form::kJson && options.diff)
    out << diff_refusal(message);
  else if (options.form == Form::kJson)
    out << as_json(made_safe(report));
  else
    err << printable(message) << "\n";
  return 2;
}

/// Why the report could not be kept, "" where it could: found out before the trials, not after.
std::string output_problem(const Options& options) {
  if (options.output.empty()) return "";
  for (const std::string& read : {options.log, options.data, options.diff_a, options.diff_b})
    if (is_same_file(options.output, read))
      return "--output and what is read are both " + options.output + ". Two files were expected.";
  const std::string problem = check_private(options.output);
  if (problem.empty()) return "";
  return "The report could not be written to " + options.output + ": " + problem + ".";
}

int deliver(const Options& options, const Report& raw, std::ostream& out, std::ostream& err) {
  Report report = made_safe(raw);
  std::string text = options.form == Form::kJson ? as_json(report)
                     : options.form == Form::kHtml
                         ? as_html(report)
                         : as_text(report, options.output.empty() ? options.look : text::Look());
  if (options.output.empty()) {
    out << text;
    out.flush();
    return exit_code(report);
  }
  std::string problem = write_private(options.output, text);
  if (!problem.empty())
    return refuse(options,
                  "The report could not be written to " + options.output + ": " + problem + ".",
                  out, err);
  if (options.form == Form::kJson) out << text;
  return exit_code(report);
}

int run_diff(const Options& options, const Data& data, std::ostream& out, std::ostream& err) {
  Snapshot a, b;
  std::string problem = take_snapshot(options.diff_a, options, data, &a);
  if (problem.empty()) problem = take_snapshot(options.diff_b, options, data, &b);
  if (!problem.empty()) return refuse(options, problem + ".", out, err);
  std::vector<std::string> untold;
  std::vector<Difference> found = compare(a, b, data, &untold);
  const text::Look look = options.output.empty() ? options.look : text::Look();
  std::string text = options.form == Form::kJson ? diff_json(a, b, found, untold)
                                                 : diff_text(a, b, found, untold, look);
  if (!options.output.empty()) {
    problem = write_private(options.output, text);
    if (!problem.empty())
      return refuse(options, options.output + " could not be written: " + problem + ".", out, err);
  } else {
    out << text;
    out.flush();
  }
  return found.empty() ? 0 : 1;
}

int run(const Options& options, std::ostream& out, std::ostream& err,
        std::vector<ProductTrial>* products) {
  Data data;
  if (!options.data.empty()) {
    std::string text, problem = read_text(options.data, &text);
    if (problem.empty()) problem = data.merge(text);
    if (!problem.empty())
      return refuse(options, "The tables in " + options.data + " cannot be used: " + problem + ".",
                    out, err);
  }
  if (options.diff) return run_diff(options, data, out, err);
  Root root(options.root);
  if (!root.ok())
    return refuse(options, "The folder " + options.root + " cannot be opened.", out, err);
  std::string log, log_problem;
  if (!options.log.empty()) log_problem = read_text(options.log, &log);
  if (!log_problem.empty())
    return refuse(options, "The log " + options.log + " cannot be read: " + log_problem + ".", out,
                  err);
  std::map<std::string, std::string> env = options.root.empty() ? own_environment() : options.env;
  if (options.root.empty())
    for (const auto& [name, value] : options.env) env[name] = value;
  Machine machine = read_machine(root, data, env, log, "The log");
  if (root.live()) add_live_facts(root, data, &machine);
  Question question{options.python, options.framework, options.framework_release};
  if (options.plan)
    return deliver(
        options,
        make_plan(root, data, std::move(machine), options.framework, options.spec, options.python),
        out, err);
  Survey survey = make_survey(root, data, std::move(machine), question);
  if (!options.python.empty() && survey.environments.empty())
    return refuse(options, options.python + " is no Python and no environment that could be read.",
                  out, err);
  LiveResults live;
  if (root.live() && options.live_tests) {
    live = run_live_tests(root, survey, options.framework);
    if (products != nullptr) *products = live.products;
    if (!live.errors.empty()) {
      survey.machine.log += "\n" + live.errors;
      log_facts(survey.machine, data, &survey.facts);
    }
  }
  return deliver(
      options,
      make_report(root, data, survey, question, std::move(live.findings), std::move(live.lines)),
      out, err);
}

}  // namespace

int doctor_main(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
                const text::Look& look, std::vector<ProductTrial>* products) {
  Options options = parse_options(arguments);
  options.look = look;
  try {
    if (options.error.empty()) options.error = output_problem(options);
    if (!options.error.empty()) return refuse(options, options.error, out, err);
    return run(options, out, err, products);
  } catch (const std::exception& problem) {
    return refuse(options, std::string("The examination ended early: ") + problem.what(), out, err);
  }
}

}  // namespace tracefire::doctor
