// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/fix.h"

#include "tools/doctor/rules.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

/// Where the words of a command end: at what no shell word of it holds.
size_t end_of_words(const std::string& text, size_t at) {
  for (char quote = 0; at < text.size(); ++at) {
    const char c = text[at], next = at + 1 < text.size() ? text[at + 1] : ' ';
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (c == ';' || c == '(' || c == ')' || (c == '&' && next == '&')) break;
    if ((c == ',' || c == '.' || c == ':') && next == ' ') break;
    if (c == ' ')
      for (const char* word : {" or ", " and ", " then ", " where "})
        if (text.compare(at, std::string(word).size(), word) == 0) return at;
  }
  while (at > 0 && text[at - 1] == ' ') --at;
  return at;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  char quote = 0;
  for (char c : text + " ") {
    if (quote == 0 && c == ' ') {
      if (!word.empty()) out.push_back(word);
      word.clear();
      continue;
    }
    if (quote != 0 ? c == quote : c == '"' || c == '\'') quote = quote != 0 ? 0 : c;
    word += c;
  }
  return out;
}

struct Install {
  std::vector<std::string> options;   ///< without those that name an index
  std::string index, links;           ///< behind -i and -f
  std::vector<std::string> packages;  ///< as they were written, quotes too
};

Install parse_install(const std::string& arguments) {
  Install out;
  const std::vector<std::string> words = words_of(arguments);
  for (size_t i = 0; i < words.size(); ++i) {
    const bool more = i + 1 < words.size();
    if (words[i] == "-i" && more)
      out.index = words[++i];
    else if (words[i] == "-f" && more)
      out.links = words[++i];
    else if (words[i][0] == '-')
      out.options.push_back(words[i]);
    else
      out.packages.push_back(words[i]);
  }
  return out;
}

std::string unquoted(std::string word) {
  std::erase_if(word, [](char c) { return c == '"' || c == '\''; });
  return word;
}

/// "tensorflow" and "==2.18.*" of "\"tensorflow[and-cuda]==2.18.*\"".
std::pair<std::string, std::string> taken_apart(const std::string& package) {
  const std::string plain = unquoted(package);
  const size_t end = std::min(plain.size(), plain.find_first_of("[=<>!~"));
  const size_t conditions = std::min(plain.size(), plain.find_first_of("=<>!~"));
  return {plain.substr(0, end), plain.substr(conditions)};
}

/// conda-forge's name and conditions for a package of PyPI, "" for what is a part of others there.
std::string conda_package(const std::string& package) {
  auto [name, conditions] = taken_apart(package);
  std::string build;
  if (name == "tensorflow" || name == "tensorflow-gpu") name = "tensorflow", build = "cuda*";
  if (name == "torch") name = "pytorch", build = "*cuda*";
  if (name == "jax") name = "jaxlib", build = "*cuda*";
  if (name.rfind("nvidia-cudnn-", 0) == 0) name = "cudnn";
  if (name.rfind("nvidia-cuda-nvcc", 0) == 0) name = "cuda-nvcc";
  if (name.rfind("nvidia-cublas", 0) == 0) name = "libcublas";
  if (name.rfind("nvidia-curand", 0) == 0) name = "libcurand";
  if (conditions.empty()) return build.empty() ? name : "\"" + name + "=*=" + build + "\"";
  return "\"" + name + (build.empty() ? conditions : " " + conditions + " " + build) + "\"";
}

std::string conda_of(const Facts& facts, const std::string& prefix) {
  return facts.get(prefix + "pip.run_as") +
         (contains(facts.get(prefix + "pip.env"), "micromamba") ? "micromamba" : "conda");
}

/// What installs in one environment.
class Installer {
 public:
  Installer(const Facts& facts, const std::string& prefix) : facts_(facts), prefix_(prefix) {}

  std::string by() const { return fact("pip.by"); }
  std::string install(const std::string& arguments) const;
  std::string uninstall(const std::string& arguments) const;
  /// Whether an installation takes the place of what is there, so that nothing is to be removed.
  bool replaces() const { return by() == "conda" || by() == "pixi" || by() == "managed"; }

 private:
  std::string fact(const std::string& name) const { return facts_.get(prefix_ + name); }
  std::string pip() const { return fact("pip"); }
  std::string conda() const { return conda_of(facts_, prefix_); }
  std::string in_new_environment(const Install& asked, const std::string& arguments) const;

  const Facts& facts_;
  const std::string prefix_;
};

std::string Installer::in_new_environment(const Install& asked,
                                          const std::string& arguments) const {
  std::string id;
  for (const std::string& package : asked.packages) {
    const std::string name = taken_apart(package).first;
    for (const char* one : {"tensorflow", "torch", "jax", "keras"})
      if (id.empty() && (name == one || name == std::string(one) + "-cpu")) id = one;
  }
  std::string more, rest = arguments;
  if (id.empty()) {  // a package alone is no cure in an environment without the framework
    const std::string all = facts_.get("env.frameworks");
    id = !prefix_.empty()   ? facts_.get("main.framework")
         : facts_.has("fw") ? facts_.get("fw")
                            : all.substr(0, all.find(' '));
    const std::string release = public_part(prefix_.empty() ? facts_.get("fw.version") : "");
    if (!id.empty()) {
      more = "\"" +
             (id == "tensorflow" ? "tensorflow[and-cuda]"
              : id == "jax"      ? "jax[cuda12]"
                                 : id) +
             (release.empty() ? "" : "==" + release) + "\" ";
      rest = join(asked.packages, " ");
    }
  }
  const std::string folder = "~/" + (id.empty() ? "gpu" : id) + "-env";
  return fact("pip.base") + " -m venv " + folder + " && " + folder + "/bin/python -m pip install " +
         more + rest;
}

std::string Installer::install(const std::string& arguments) const {
  const Install asked = parse_install(arguments);
  const std::string way = by();
  if (way == "uv")
    return fact("pip.run_as") + "uv pip install --python " + fact("pip.python") + " " + arguments;
  if (way == "pipx") return "pipx runpip " + fact("pip.project") + " install " + arguments;
  if (way == "managed") return in_new_environment(asked, arguments);
  if (way == "conda") {
    std::string out = conda() + " install -p " + fact("pip.env") + " -c conda-forge";
    for (const std::string& option : asked.options)
      if (option == "--force-reinstall") out += " --force-reinstall";
    for (const std::string& package : asked.packages) out += " " + conda_package(package);
    return out;
  }
  if (way == "pixi") {
    std::string packages;
    for (const std::string& package : asked.packages) packages += " " + conda_package(package);
    return fact(contains(packages, "cuda*") ? "conda.install_cuda" : "conda.install") + packages;
  }
  bool plain = asked.index.empty() && asked.links.empty();
  for (const std::string& option : asked.options) plain &= option == "-U";
  if (way == "poetry" && plain) {
    std::string out = "poetry -C " + fact("pip.project") + " add";
    for (const std::string& package : asked.packages) {
      const bool any = taken_apart(package).second.empty() && !asked.options.empty();
      out += any ? " \"" + unquoted(package) + "@latest\"" : " " + package;
    }
    return out;
  }
  if (way == "poetry" && !asked.index.empty() && asked.links.empty()) {
    const std::string name = "pytorch-" + name_of(asked.index);
    return "poetry -C " + fact("pip.project") + " source add --priority=explicit " + name + " " +
           asked.index + " && poetry -C " + fact("pip.project") + " add --source " + name + " " +
           join(asked.packages, " ");
  }
  if (way == "pdm" && plain) {
    std::string out = "pdm add -p " + fact("pip.project");
    for (const std::string& package : asked.packages) out += " " + package;
    return out;
  }
  if (way == "pdm" || way == "ensurepip")  // made without pip
    return fact("pip.run_as") + fact("pip.python") + " -m ensurepip --upgrade && " + pip() +
           " install " + arguments;
  return pip() + " install " + arguments;
}

std::string Installer::uninstall(const std::string& arguments) const {
  std::vector<std::string> names;
  for (const std::string& word : words_of(arguments))
    if (word[0] != '-') names.push_back(word);
  const std::string way = by();
  if (way == "uv")
    return fact("pip.run_as") + "uv pip uninstall --python " + fact("pip.python") + " " +
           join(names, " ");
  if (way == "pipx")
    return "pipx runpip " + fact("pip.project") + " uninstall -y " + join(names, " ");
  if (way == "conda") return conda() + " remove -p " + fact("pip.env") + " " + join(names, " ");
  if (way == "pixi")
    return "pixi remove --pypi --manifest-path " + fact("pip.project") + " " + join(names, " ");
  if (way == "pdm") return "pdm remove -p " + fact("pip.project") + " " + join(names, " ");
  if (way == "poetry") return "poetry -C " + fact("pip.project") + " remove " + join(names, " ");
  return pip() + " uninstall -y " + join(names, " ");
}

/// Every "{pip} install …" and "{main.pip} uninstall …".
std::string with_installers(std::string text, const Facts& facts) {
  for (const std::string& prefix : {std::string("main."), std::string()}) {
    const std::string token = "{" + prefix + "pip} ";
    const Installer installer(facts, prefix);
    for (size_t at = 0; (at = text.find(token, at)) != text.npos;) {
      const size_t verb = at + token.size();
      const bool install = text.compare(verb, 8, "install ") == 0;
      const bool remove = text.compare(verb, 10, "uninstall ") == 0;
      if (!install && !remove) {
        at = verb;
        continue;
      }
      const size_t first = verb + (install ? 8 : 10), end = end_of_words(text, first);
      size_t until = end;
      const std::string arguments = fill(text.substr(first, end - first), facts);
      std::string command;
      if (install) command = installer.install(arguments);
      if (remove && installer.replaces()) {
        for (const std::string& then : {" && " + token + "install ", "; " + token + "install "})
          if (text.compare(end, then.size(), then) == 0) until = text.find('{', end);
      }
      if (remove && until == end) command = installer.uninstall(arguments);
      text.replace(at, until - at, command);
      at += command.size();
    }
  }
  return text;
}

/// Every "pythonV -m venv FOLDER && …": with what it takes on this system.
std::string with_pythons(std::string text, const Facts& facts) {
  if (facts.get("platform") != "linux") return text;
  const std::string verb = " -m venv ~/", known = " " + facts.get("pythons") + " ";
  const std::string way = facts.has("pip.by") ? facts.get("pip.by") : facts.get("main.pip.by");
  for (size_t at = 0; (at = text.find(verb, at)) != text.npos; at += verb.size()) {
    const size_t begin = text.find_last_of(" :(", at - 1) + 1;
    const std::string python = text.substr(begin, at - begin);
    const std::string version = python.size() > 6 ? python.substr(6) : "";
    const size_t from = at + verb.size() - 2;
    const std::string folder = text.substr(from, text.find_first_of(" ;)", from) - from);
    if (python.rfind("python", 0) != 0 || folder.size() < 3) continue;
    const std::string here = python + verb.substr(0, verb.size() - 2) + folder;
    const bool numbered = contains(version, ".");
    std::string made = here;
    if (way == "uv") {
      made = "uv venv --seed" + (numbered ? " --python " + version : "") + " " + folder;
    } else if (way == "conda") {
      made = "conda create -p " + folder + " pip python" + (numbered ? "=" + version : "");
    } else if (numbered && !contains(known, " " + version + " ")) {
      made = replace_all(replace_all(facts.get("cmd.python"), "{python}", version), "{folder}",
                         folder);
      if (made.empty() || !contains(made, folder)) made += (made.empty() ? "" : " && ") + here;
    } else if (numbered && facts.has("cmd.venv") &&
               !contains(" " + facts.get("pythons.venv") + " ", " " + version + " ")) {
      made = replace_all(facts.get("cmd.venv"), "{python}", version) + " && " + here;
    }
    text.replace(begin, here.size(), made);
    at = begin + made.size() - std::min(made.size(), verb.size());
  }
  return text;
}

}  // namespace

void installer_facts(const std::string& prefix, const Environment* env, Facts* facts) {
  if (env == nullptr) {
    facts->set(prefix + "pip", "python3 -m pip");
    facts->set(prefix + "pip.by", facts->has("system.managed") ? "managed" : "pip");
    facts->set(prefix + "pip.python", "python3");
    facts->set(prefix + "pip.base", "python3");
    return;
  }
  const std::string minor = leading(env->python, 2);
  facts->set(prefix + "pip", env->pip());
  facts->set(prefix + "pip.by", env->installer.empty() ? "pip" : env->installer);
  facts->set(prefix + "pip.python", env->interpreter);
  facts->set(prefix + "pip.run_as", env->run_as);
  facts->set(prefix + "pip.env", env->prefix);
  facts->set(prefix + "pip.project", env->project);
  facts->set(prefix + "pip.base", "python" + (minor.empty() ? "3" : minor));
  const bool pixi = env->installer == "pixi";
  const std::string manifest = " --manifest-path " + env->project;
  facts->set(prefix + "conda.install",
             pixi ? env->run_as + "pixi add" + manifest
                  : conda_of(*facts, prefix) + " install -p " + env->prefix + " -c conda-forge");
  // The solver takes builds for CUDA only where it is told that CUDA is there.
  const std::string install = facts->get(prefix + "conda.install");
  facts->set(prefix + "conda.install_cuda",
             pixi ? env->run_as + "pixi workspace system-requirements add cuda 12" + manifest +
                        " && " + install
                  : env->run_as + (env->run_as.empty() ? "" : "env ") +
                        "CONDA_OVERRIDE_CUDA=12.4 " + install.substr(env->run_as.size()));
}

void python_places(const Root& root, const Machine& machine,
                   const std::vector<Environment>& environments, Facts* facts) {
  std::set<std::string> all, venvs;
  for (const char* folder : {"/usr/bin", "/usr/local/bin"})
    for (const std::string& name : root.list(folder, 20000))
      if (std::string version = name.rfind("python3.", 0) == 0 ? name.substr(6) : "";
          is_version(version))
        all.insert(version);
  for (const Environment& env : environments) {
    if (env.python.empty() || !env.stray.empty()) continue;
    if (env.kind == "system" || env.kind == "venv" || env.kind == "user")
      all.insert(leading(env.python, 2));
    if (env.kind == "venv") venvs.insert(leading(env.python, 2));
    if (env.installer == "managed") facts->set("system.managed", "yes");
  }
  for (const std::string& version : all)
    if (root.exists("/usr/lib/python" + version + "/ensurepip")) venvs.insert(version);
  facts->set("pythons", join({all.begin(), all.end()}, " "));
  facts->set("pythons.venv", join({venvs.begin(), venvs.end()}, " "));
  if (system_is_managed(root, machine, "")) facts->set("system.managed", "yes");
}

std::string fill_fix(const std::string& text, const Facts& facts) {
  std::string out = with_pythons(fill(with_installers(text, facts), facts), facts);
  // In a container commands are root's, but where they are for the host.
  if (facts.has("container") && !contains(lower(out), "host"))
    for (size_t at = 0; (at = out.find("sudo ", at)) != out.npos;) {
      if (out.compare(at + 5, 1, "-") == 0)
        at += 5;
      else
        out.erase(at, 5);
    }
  return out;
}

}  // namespace tracefire::doctor
