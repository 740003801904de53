// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ostream>

#include "tools/doctor/derive.h"
#include "tools/doctor/live/live.h"
#include "tools/doctor/options.h"
#include "tools/doctor/plan.h"
#include "tools/doctor/survey.h"
#include "tools/doctor/text.h"

extern char** environ;

namespace tracefire::doctor {

namespace {

constexpr size_t kHalfLog = 4 << 20;
constexpr size_t kMaxStream = 64 << 20;
constexpr int kStreamWait = 2000;  // milliseconds without a byte

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    size_t equal = text.find('=');
    if (equal != text.npos)
      out[std::string(text.substr(0, equal))] = std::string(text.substr(equal + 1));
  }
  return out;
}

/// The first and the last megabytes of a file or of a pipe. Returns what went wrong.
std::string read_log(const std::string& path, std::string* text) {
  int fd = path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat st {};
  if (fd < 0 || ::fstat(fd, &st) != 0) return std::strerror(errno);
  std::string problem;
  auto read_up_to = [&](size_t limit) {
    char buffer[65536];
    size_t total = 0;
    while (total < limit) {
      pollfd waiting{fd, POLLIN, 0};
      if (!S_ISREG(st.st_mode) && ::poll(&waiting, 1, kStreamWait) <= 0) break;
      ssize_t got = ::read(fd, buffer, std::min(sizeof buffer, limit - total));
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) problem = std::strerror(errno);
      if (got <= 0) break;
      text->append(buffer, static_cast<size_t>(got));
      total += static_cast<size_t>(got);
      if (text->size() > 4 * kHalfLog) text->erase(kHalfLog, text->size() - 3 * kHalfLog);
    }
  };
  if (S_ISDIR(st.st_mode))
    problem = "it is a folder";
  else if (S_ISREG(st.st_mode) && st.st_size > static_cast<off_t>(2 * kHalfLog)) {
    read_up_to(kHalfLog);
    text->push_back('\n');
    if (::lseek(fd, st.st_size - static_cast<off_t>(kHalfLog), SEEK_SET) >= 0) read_up_to(kHalfLog);
  } else {
    read_up_to(kMaxStream);
  }
  if (fd != 0) ::close(fd);
  return problem;
}

/// Readable by its owner alone; a link or another user's file is not written to.
std::string write_private(const std::string& path, const std::string& text) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  struct stat st {};
  if (fd < 0 || ::fstat(fd, &st) != 0) return std::strerror(errno);
  std::string problem;
  if (!S_ISREG(st.st_mode) || st.st_uid != ::geteuid())
    problem = "it is no plain file of this user";
  else if (::fchmod(fd, 0600) != 0 || ::ftruncate(fd, 0) != 0)
    problem = std::strerror(errno);
  for (size_t done = 0; problem.empty() && done < text.size();) {
    ssize_t put = ::write(fd, text.data() + done, text.size() - done);
    if (put < 0 && errno != EINTR) problem = std::strerror(errno);
    if (put > 0) done += static_cast<size_t>(put);
  }
  ::close(fd);
  return problem;
}

int refuse(const Options& options, const std::string& message, std::ostream& out,
           std::ostream& err) {
  Report report;
  report.verdict = "unknown";
  report.summary = message;
  if (options.form == Form::kJson)
    out << as_json(made_safe(report));
  else
    err << "tracefire doctor: " << printable(message) << "\n"
        << "tracefire doctor --help lists the arguments.\n";
  return 2;
}

int deliver(const Options& options, const Report& raw, std::ostream& out, std::ostream& err) {
  Report report = made_safe(raw);
  std::string text = options.form == Form::kJson   ? as_json(report)
                     : options.form == Form::kHtml ? as_html(report)
                                                   : as_text(report);
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

int run(const Options& options, std::ostream& out, std::ostream& err) {
  Data data;
  if (!options.data.empty()) {
    std::string text, problem = read_log(options.data, &text);
    if (problem.empty()) problem = data.merge(text);
    if (!problem.empty())
      return refuse(options, "The tables in " + options.data + " cannot be used: " + problem + ".",
                    out, err);
  }
  Root root(options.root);
  if (!root.ok())
    return refuse(options, "The folder " + options.root + " cannot be opened.", out, err);
  std::string log, log_problem;
  if (!options.log.empty()) log_problem = read_log(options.log, &log);
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
    return deliver(options,
                   make_plan(root, data, std::move(machine), options.framework,
                             options.framework_release, options.python),
                   out, err);
  Survey survey = make_survey(root, data, std::move(machine), question);
  if (!options.python.empty() && survey.environments.empty())
    return refuse(options, options.python + " is no Python and no environment that could be read.",
                  out, err);
  LiveResults live;
  if (root.live() && options.live_tests) {
    live = run_live_tests(root, survey, options.framework);
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

int doctor_main(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  Options options = parse_options(arguments);
  try {
    if (options.help) {
      out << usage();
      return 0;
    }
    if (!options.error.empty()) return refuse(options, options.error, out, err);
    return run(options, out, err);
  } catch (const std::exception& problem) {
    return refuse(options, std::string("The examination ended early: ") + problem.what(), out, err);
  }
}

}  // namespace tracefire::doctor
