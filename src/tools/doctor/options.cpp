// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/options.h"

#include <algorithm>

#include "tools/doctor/frameworks.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  bool form_given = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], value;
    bool joined = name.rfind("--", 0) == 0 && contains(name, "=");
    if (joined) {
      value = name.substr(name.find('=') + 1);
      name = name.substr(0, name.find('='));
    }
    auto take = [&](std::string* into) {
      if (!joined) {
        if (i + 1 >= arguments.size()) {
          options.error = name + " needs a value.";
          return;
        }
        value = arguments[++i];
      }
      // As a script's empty variable gives it: --root "" is not this machine.
      if (value.empty()) options.error = name + " was given an empty value.";
      *into = value;
    };
    auto choose = [&](Form form) {
      if (joined) options.error = name + " takes no value.";
      if (form_given && options.form != form)
        options.error = "--json and --html exclude each other.";
      options.form = form;
      form_given = true;
    };
    std::string pair;
    if (name == "plan" && i == 0)
      options.plan = true;
    else if (name == "diff" && i == 0)
      options.diff = true;
    else if (options.diff && (name == "-" || name.rfind("-", 0) != 0) && options.diff_b.empty())
      (options.diff_a.empty() ? options.diff_a : options.diff_b) = arguments[i];
    else if (name == "--json" || name == "--html")
      choose(name == "--json" ? Form::kJson : Form::kHtml);
    else if (name == "--no-tests" && !joined)
      options.live_tests = false;
    else if (name == "--root")
      take(&options.root);
    else if (name == "--log")
      take(&options.log);
    else if (name == "--python")
      take(&options.python);
    else if (name == "--framework")
      take(&options.framework);
    else if (name == "--data")
      take(&options.data);
    else if (name == "--output" || name == "-o")
      take(&options.output);
    else if (name == "--env") {
      take(&pair);
      size_t equal = pair.find('=');
      if (equal == 0 || equal == pair.npos)
        options.error = "--env needs VARIABLE=VALUE, not \"" + pair + "\".";
      else
        options.env[pair.substr(0, equal)] = pair.substr(equal + 1);
    } else {
      options.error = "\"" + arguments[i] + "\" is no argument of doctor.";
    }
    if (!options.error.empty()) break;
  }
  // An error in the arguments is answered in JSON where that is asked for, before or behind it.
  if (!options.error.empty() &&
      std::find(arguments.begin(), arguments.end(), "--json") != arguments.end())
    options.form = Form::kJson;
  if (!options.framework.empty() && options.error.empty()) {
    size_t at = options.framework.find("==");
    if (at != std::string::npos) options.framework_release = options.framework.substr(at + 2);
    const std::string asked = options.framework;
    std::string id = framework_of(options.framework);
    if (id.empty())
      options.error =
          "\"" + options.framework +
          "\" is no framework that doctor knows: tensorflow, torch, jax, keras, tracefire.";
    else
      options.framework = id;
    if (options.plan && options.error.empty()) options.spec = parse_plan_spec(asked);
    if (options.plan && !options.spec.error.empty())
      options.error = "--framework " + asked + ": " + options.spec.error + ".";
    if (options.plan && id == "tracefire")
      options.error =
          "doctor plan knows tensorflow, torch, jax and keras; Tracefire's own wheel "
          "brings what it needs but the driver.";
  }
  if (options.error.empty() && (options.log == "-") + (options.data == "-") +
                                       (options.diff_a == "-") + (options.diff_b == "-") >
                                   1)
    options.error = "Standard input can be read once only, and - was given twice.";
  if (options.plan && options.framework.empty() && options.error.empty())
    options.error = "doctor plan needs --framework NAME or --framework NAME==VERSION.";
  if (options.diff && options.error.empty()) {
    if (options.diff_b.empty())
      options.error =
          "doctor diff needs two of: a folder, a report of doctor --json, a manifest; / is this "
          "machine.";
    else if (options.form == Form::kHtml)
      options.error = "doctor diff has text and --json, no --html.";
    else if (!options.root.empty() || !options.log.empty())
      options.error =
          "--root and --log do not go with doctor diff, which names what it reads: A B.";
  }
  return options;
}

}  // namespace tracefire::doctor
