// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/options.h"

#include "tools/doctor/frameworks.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  // The form first: also an error in the arguments is answered in it.
  for (const std::string& argument : arguments)
    if (argument == "--json") options.form = Form::kJson;
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
      *into = value;
    };
    std::string pair;
    if (name == "plan" && i == 0)
      options.plan = true;
    else if (name == "diff" && i == 0)
      options.diff = true;
    else if (options.diff && (name == "-" || name.rfind("-", 0) != 0) && options.diff_b.empty())
      (options.diff_a.empty() ? options.diff_a : options.diff_b) = arguments[i];
    else if (name == "--help" || name == "-h")
      options.help = true;
    else if (name == "--json")
      options.form = Form::kJson;
    else if (name == "--html")
      options.form = Form::kHtml;
    else if (name == "--no-tests")
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
        options.error = "--env needs NAME=VALUE, not \"" + pair + "\".";
      else
        options.env[pair.substr(0, equal)] = pair.substr(equal + 1);
    } else {
      options.error = "\"" + arguments[i] + "\" is no argument of doctor.";
    }
    if (!options.error.empty()) break;
  }
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
  if (options.plan && options.framework.empty() && options.error.empty() && !options.help)
    options.error = "doctor plan needs --framework NAME or --framework NAME==VERSION.";
  if (options.diff && options.error.empty() && !options.help) {
    if (options.diff_b.empty())
      options.error =
          "doctor diff needs two of: a folder, a report of doctor --json, a manifest; / is this "
          "machine.";
    else if (options.form == Form::kHtml)
      options.error = "doctor diff has text and --json, no --html.";
  }
  return options;
}

std::string usage() {
  return "usage: tracefire doctor [options]\n"
         "       tracefire doctor plan --framework NAME[==VERSION|>=A,<B|+BUILD] [options]\n"
         "       tracefire doctor diff A B [--json]\n"
         "Finds out why a GPU is not used, and says what to do. Changes nothing; needs neither "
         "Python nor a GPU.\n\n"
         "  --root DIR         read DIR in the place of / (a mounted image, a chroot, a fixture)\n"
         "  --env NAME=VALUE   with --root: its environment; may be repeated\n"
         "  --log FILE         a framework's saved output\n"
         "  --python PATH      read one environment: its interpreter or its folder\n"
         "  --framework NAME   ask about tensorflow, torch, jax, keras or tracefire\n"
         "  --no-tests         do not try out the GPU\n"
         "  --json, --html     the form of the report; text without either\n"
         "  --output FILE      write the report there, readable by its owner alone\n"
         "  --data FILE        newer version tables and rules\n\n"
         "doctor plan --framework NAME[==VERSION|>=A,<B|+BUILD] says what fits this machine before "
         "it is installed: the newest release of the range, with the command, or which layer "
         "speaks against it.\n"
         "doctor diff A B compares two of: a folder (/ is this machine), a report of doctor "
         "--json, "
         "a manifest;\n"
         "it says what can change results or speed. Exit status: 0 the same, 1 different.\n"
         "Exit status: 0 gpu-ok, 1 gpu-broken, 3 gpu-degraded, 4 cpu-only; 2 for wrong "
         "arguments.\n";
}

}  // namespace tracefire::doctor
