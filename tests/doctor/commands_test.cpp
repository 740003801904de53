// SPDX-License-Identifier: Apache-2.0
//
// Every fix of every rule, on every kind of system: distribution, package manager, container, WSL,
// and what installs in the environment. What it tells must run there.
#include <doctest/doctest.h>

#include <regex>
#include <sstream>

#include "doctor/fixture.h"
#include "tools/doctor/derive.h"
#include "tools/doctor/derive_request.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/fix.h"
#include "tools/doctor/rules.h"
#include "tools/doctor/survey.h"

namespace tracefire::test {

namespace {

struct Distribution {
  std::string name, id, version, like, kernel;
  std::string manager;  ///< "apt", "dnf", …
};

const std::vector<Distribution> kDistributions = {
    {"Ubuntu 18.04", "ubuntu", "18.04", "debian", "4.15.0-213-generic", "apt"},
    {"Ubuntu 20.04", "ubuntu", "20.04", "debian", "5.4.0-150-generic", "apt"},
    {"Ubuntu 22.04", "ubuntu", "22.04", "debian", "6.8.0-45-generic", "apt"},
    {"Ubuntu 24.04", "ubuntu", "24.04", "debian", "6.8.0-60-generic", "apt"},
    {"Mint 21", "linuxmint", "21.3", "ubuntu debian", "5.15.0-100-generic", "apt"},
    {"Debian 11", "debian", "11", "", "5.10.0-32-amd64", "apt"},
    {"Debian 12", "debian", "12", "", "6.1.0-28-amd64", "apt"},
    {"Debian 13", "debian", "13", "", "6.12.41+deb13-amd64", "apt"},
    {"Fedora 42", "fedora", "42", "", "6.14.9-300.fc42.x86_64", "dnf"},
    {"RHEL 8", "rhel", "8.10", "fedora", "4.18.0-553.el8_10.x86_64", "dnf"},
    {"Rocky 9", "rocky", "9.5", "rhel centos fedora", "5.14.0-503.el9_5.x86_64", "dnf"},
    {"Alma 10", "almalinux", "10.0", "rhel centos fedora", "6.12.0-55.el10_0.x86_64", "dnf"},
    {"CentOS 7", "centos", "7", "rhel fedora", "3.10.0-1160.el7.x86_64", "yum"},
    {"Amazon 2023", "amzn", "2023", "fedora", "6.1.112-122.amzn2023.x86_64", "dnf"},
    {"Amazon 2", "amzn", "2", "centos rhel fedora", "5.10.220-209.amzn2.x86_64", "yum"},
    {"Arch", "arch", "", "", "6.15.2-arch1-1", "pacman"},
    {"Leap 15.6", "opensuse-leap", "15.6", "suse opensuse", "6.4.0-150600-default", "zypper"},
    {"Tumbleweed", "opensuse-tumbleweed", "20260301", "suse", "6.15.0-1-default", "zypper"},
    {"SLES 15", "sles", "15.6", "suse", "6.4.0-150600-default", "zypper"},
    {"Gentoo", "gentoo", "2.17", "", "6.12.31-gentoo", "emerge"},
    {"NixOS", "nixos", "25.05", "", "6.12.30", "nix"},
    {"Void", "void", "", "", "6.12.30_1", "none"}};

/// What each package manager's systems have, and no others.
const std::map<std::string, std::vector<std::string>> kOnlyThere = {
    {"apt", {"apt", "add-apt-repository", "dpkg", "apt-mark", "update-initramfs"}},
    {"dnf", {"dnf", "rpm"}},
    {"yum", {"yum", "yum-config-manager"}},
    {"pacman", {"pacman", "makepkg", "mkinitcpio"}},
    {"zypper", {"zypper"}},
    {"emerge", {"emerge"}},
    {"nix", {"nixos-rebuild", "nix-channel", "sbctl"}}};

/// Kinds of environments: what installs there.
const std::vector<std::string> kEnvironments = {"pip", "uv",     "conda", "managed",
                                                "pdm", "poetry", "pipx",  "none"};

struct Place {
  Distribution system;
  std::string environment;
  bool container = false, wsl = false;
  std::string words() const {
    return system.name + ", " + environment + (container ? ", container" : "") +
           (wsl ? ", WSL" : "");
  }
};

Tree tree_of(const Place& place) {
  const Distribution& d = place.system;
  Tree tree = {{"/etc/os-release",
                "ID=" + d.id + "\nVERSION_ID=\"" + d.version + "\"\nID_LIKE=\"" + d.like + "\"\n"},
               {"/proc/version", "Linux version " +
                                     (place.wsl ? "5.15.167.4-microsoft-standard-WSL2" : d.kernel) +
                                     " (builder@host)\n"},
               {"/usr/bin/python3.12", ""}};
  if (place.container) tree["/.dockerenv"] = "";
  const std::string& kind = place.environment;
  std::string prefix = kind == "poetry" || kind == "pdm" ? "/srv/app/.venv"
                       : kind == "pipx"                  ? "/srv/ada/.local/share/pipx/venvs/app"
                       : kind == "conda"                 ? "/opt/conda/envs/ml"
                       : kind == "managed"               ? "/usr/local"
                                                         : "/opt/venv";
  if (kind == "none") return tree;
  const std::string site =
      prefix + "/lib/python3.12/" + (kind == "managed" ? "dist-packages/" : "site-packages/");
  auto dist = [&](const std::string& name, const std::string& version) {
    tree[site + name + "-" + version + ".dist-info/METADATA"] =
        "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n";
  };
  dist("torch", "2.6.0");
  dist("tensorflow", "2.18.0");
  if (kind == "pip" || kind == "poetry") dist("pip", "24.0");
  if (kind == "managed") tree["/usr/lib/python3.12/EXTERNALLY-MANAGED"] = "[externally-managed]\n";
  if (kind == "conda") {
    for (const char* name :
         {"pytorch-2.6.0-cuda126_py312h1", "tensorflow-2.18.0-cuda126py312h2", "python-3.12.8-h9"})
      tree[prefix + "/conda-meta/" + name + ".json"] = "";
  } else if (kind != "managed") {
    tree[prefix + "/pyvenv.cfg"] =
        std::string("home = /usr/bin\n") +
        (kind == "uv" ? "uv = 0.8.3\nversion_info = 3.12.4\n" : "version = 3.12.4\n");
  }
  if (kind == "poetry") tree["/srv/app/poetry.lock"] = "";
  if (kind == "pdm") tree["/srv/app/pdm.lock"] = "";
  return tree;
}

std::string fact_of(std::string condition) {
  condition.erase(0, condition.find_first_not_of('!'));
  return condition.substr(0, condition.find_first_of("=!<>~"));
}

/// Facts that the place decides; of all others either value is possible.
bool of_the_place(const std::string& condition) {
  static const std::set<std::string> kFacts = {
      "container",          "wsl",      "jetson",      "system",
      "platform",           "notebook", "musl",        "fw",
      "fw.conda",           "ldpath",   "fw.shadow",   "fw.windows_dlls",
      "cmd.driver_for_gpu", "env",      "fw.pip_cuda", "fw.aarch64"};
  return kFacts.count(fact_of(condition)) != 0;
}

bool possible(const doctor::Json& conditions, const doctor::Facts& facts) {
  for (const doctor::Json& one : conditions) {
    bool any = false;
    for (const doctor::Json& choice : one.is_array() ? one : doctor::Json::array({one})) {
      const std::string text = choice.get<std::string>();
      any |= !of_the_place(text) || doctor::holds(text, facts);
    }
    if (!any) return false;
  }
  return true;
}

/// The texts of a rule's fix that a place can meet.
std::vector<std::string> texts_of_fix(const doctor::Json& rule, const doctor::Facts& facts) {
  std::vector<std::string> out;
  if (!rule.contains("fix") || !possible(rule["when"], facts)) return out;
  if (rule["fix"].is_string()) return {rule["fix"].get<std::string>()};
  for (const doctor::Json& row : rule["fix"]) {
    doctor::Json conditions = doctor::Json::array();
    bool certain = true;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      if (!row[i].get<std::string>().empty()) conditions.push_back(row[i]);
      certain &= row[i].get<std::string>().empty() || of_the_place(row[i].get<std::string>());
    }
    if (!possible(conditions, facts)) continue;
    out.push_back(row.back().get<std::string>());
    if (certain) break;
  }
  return out;
}

/// A value for each fact that the text asks for and the place does not tell.
void add_samples(const std::string& text, doctor::Facts* facts) {
  static const std::map<std::string, std::string> kSamples = {
      {"fw.version", "2.18.0"},
      {"fw.install", "tensorflow[and-cuda]"},
      {"fw.cuda", "12.5"},
      {"fw.cudnn_pip", "9.3"},
      {"fw.cudnn_wanted", "9.3"},
      {"torch.index", "cu126"},
      {"fw.elsewhere_dirs", "/x/lib"},
      {"fw.elsewhere_dir", "/x/lib"},
      {"asked.best", "3.13"},
      {"asked", "tensorflow"},
      {"asked.install", "tensorflow[and-cuda]"},
      {"fw.jax_extra", "cuda12"},
      {"fw.cudnn_pinned", "nvidia-cudnn-cu12==9.10.2.21"},
      {"fw.driver_floor", "525.60.13"},
      {"cudnn.keep", "nvidia-cudnn-cu12"},
      {"cudnn.drop", "nvidia-cudnn-cu13"},
      {"module.where", "/opt/venv"},
      {"module.python", "/opt/venv/bin/python"},
      {"fw.dist", "tensorflow"},
      {"gpu.name", "NVIDIA GPU"},
      {"fw.shadow", "/x/lib"},
      {"log.cudnn_built", "9.3"},
      {"module.install", "torch"},
      {"libcuda.off_path", "/x/lib"},
      {"driver.version", "550.54.15"},
      {"fw.keras_needs", ">=3"},
      {"fw.tf_keras", "2.18"},
      {"keras.other", "torch"}};
  static const std::regex kName("\\{([a-z0-9_.]+)\\}");
  for (std::sregex_iterator it(text.begin(), text.end(), kName), end; it != end; ++it) {
    const std::string name = (*it)[1];
    const bool optional = name == "on_host" || name == "ld.unset" || name == "main.pip" ||
                          name == "pip" || name.rfind("cmd.", 0) == 0;
    if (optional || facts->has(name)) continue;
    auto sample = kSamples.find(name);
    facts->set(name, sample == kSamples.end() ? "1" : sample->second);
  }
}

bool has_word(const std::string& text, const std::string& word) {
  for (size_t at = 0; (at = text.find(word, at)) != text.npos; at += word.size()) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const char after = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    if (after == ' ' && std::string(" (|;:").find(before) != std::string::npos) return true;
  }
  return false;
}

/// What of a fix does not run in that place, "" where all does.
std::string problem_of(const std::string& text, const Place& place) {
  const bool for_host = text.find("host") != text.npos;
  if (text.find("\xe2\x80\xa6") != text.npos || text.find("...") != text.npos) return "a gap";
  if (text.find_first_of("{}") != text.npos) return "a fact that is not filled in";
  static const std::regex kSlip("\\.\\.( |$)|  |&& *(&&|;|$)|: *$");
  if (std::regex_search(text, kSlip)) return "a slip";
  static const std::regex kNames(" (NAME|IMAGE|PACKAGE|CONTAINER|DIR)( |;|$)");
  if (std::regex_search(text, kNames)) return "a placeholder";
  if (place.container && !for_host && text.find("sudo ") != text.npos) return "sudo in a container";
  if (text.find("unset LD_LIBRARY_PATH") != text.npos) return "unset of what is not set";
  if (!place.container)
    for (const auto& [manager, words] : kOnlyThere)
      for (const std::string& word : words)
        if (manager != place.system.manager && has_word(text, word))
          return word + " is not on this system";
  if (has_word(text, "dracut") && place.system.manager == "apt") return "dracut on Debian";
  if (has_word(text, "update-secureboot-policy") && place.system.id != "ubuntu" &&
      place.system.id != "linuxmint")
    return "Ubuntu's command";
  if ((has_word(text, "akmods") || has_word(text, "kmodgenca")) && place.system.id != "fedora" &&
      !place.container)
    return "Fedora's command";
  // pip of the environment, where it has none or must not be used.
  const std::string& kind = place.environment;
  static const std::regex kPip("(\\S+) -m pip (un)?install");
  for (std::sregex_iterator it(text.begin(), text.end(), kPip), end; it != end; ++it) {
    const std::string python = (*it)[1];
    if (python.rfind("~/", 0) == 0) continue;  // of an environment that the fix makes
    if (kind == "uv" && python == "/opt/venv/bin/python") return "pip where there is none";
    if (kind == "pdm" && python.rfind("/srv", 0) == 0 && text.find("ensurepip") == text.npos)
      return "pip where there is none";
    if (kind == "conda" && python.rfind("/opt/conda", 0) == 0) return "pip over conda's packages";
    if (kind == "managed" && python.rfind("python3", 0) == 0 && python != "python3" &&
        !(*it)[2].matched)
      return "pip in a managed system";
  }
  if (kind != "conda" && has_word(text, "conda") && kind != "pip") return "conda";
  // An environment of its own, of a Python that is there or is installed first.
  const size_t made = text.find("python3.13 -m venv");
  if (made != text.npos && text.substr(0, made).find("install") == text.npos)
    return "a Python that is not there";
  return "";
}

}  // namespace

TEST_CASE("doctor: what cannot run is seen") {
  const Distribution &ubuntu = kDistributions[3], &rocky = kDistributions[10];
  const Place uv{ubuntu, "uv"}, managed{ubuntu, "managed"}, conda{ubuntu, "conda"};
  const Place on_rocky{rocky, "pip"}, image{ubuntu, "pip", true};
  for (const auto& [text, place] : std::vector<std::pair<std::string, Place>>{
           {"docker run --gpus all \xe2\x80\xa6", on_rocky},
           {"pip install {fw.install}", on_rocky},
           {"Install it: ", on_rocky},
           {"Do it.. Then more", on_rocky},
           {"docker run --gpus all IMAGE", on_rocky},
           {"sudo apt install nvidia-driver-580", on_rocky},
           {"Do it: sudo update-initramfs -u && sudo reboot", on_rocky},
           {"sudo dnf install akmod-nvidia", uv},
           {"sudo ldconfig", image},
           {"unset LD_LIBRARY_PATH && true", uv},
           {"/opt/venv/bin/python -m pip install torch", uv},
           {"/opt/conda/envs/ml/bin/python -m pip install torch", conda},
           {"Install it: python3.12 -m pip install torch", managed},
           {"Make one: python3.13 -m venv ~/x", on_rocky},
           {"Enrol: sudo kmodgenca -a && sudo reboot", on_rocky}})
    CHECK_MESSAGE(!problem_of(text, place).empty(), text);
  CHECK(problem_of("Load it: sudo modprobe nvidia", on_rocky).empty());
}

TEST_CASE("doctor: every fix runs on every kind of system") {
  const doctor::Data data;
  size_t checked = 0;
  for (const Distribution& system : kDistributions)
    for (const std::string& environment : kEnvironments)
      for (const int how : {0, 1, 2}) {
        const Place place{system, environment, how == 1, how == 2};
        // What installs in an environment does not depend on each release of a system.
        static const std::set<std::string> kAll = {"Ubuntu 24.04", "Debian 12", "Rocky 9", "Arch"};
        if (environment != "pip" && environment != "managed" && kAll.count(system.name) == 0)
          continue;
        if (place.wsl && system.manager != "apt" && system.manager != "zypper") continue;
        TreeOnDisk tree(tree_of(place));
        const doctor::Root root(tree.root());
        doctor::Machine machine = doctor::read_machine(root, data, {}, "", "");
        const doctor::Survey survey = doctor::make_survey(root, data, std::move(machine), {});
        for (const doctor::Json& rule : data.rules()) {
          const std::string scope = doctor::text_of(rule, "scope");
          for (const std::string id : {"tensorflow", "torch", "jax"}) {
            if (scope != "framework" && id != "tensorflow") break;
            doctor::Facts facts = survey.facts;
            if (!survey.environments.empty()) {
              const doctor::Surveyed& first = survey.environments[0];
              if (scope != "machine")
                facts = doctor::environment_facts(facts, first.env, first.frameworks);
              if (scope == "framework") {
                facts.set("fw", id);
                facts.set("fw.dist", id == "jax" ? "jaxlib" : id);
                facts.set("fw.install", doctor::install_words(id));
                facts.flag("fw.conda", environment == "conda");
              }
            } else if (scope != "machine") {
              break;
            }
            for (const std::string& text : texts_of_fix(rule, facts)) {
              if (text.empty()) continue;
              doctor::Facts known = facts;
              add_samples(text, &known);
              const std::string fix = doctor::fill_fix(text, known);
              const std::string problem = problem_of(fix, place);
              ++checked;
              if (problem.empty()) continue;
              FAIL_CHECK(doctor::text_of(rule, "kind")
                         << " on " << place.words() << ": " << problem << "\n  " << fix);
            }
          }
        }
      }
  CHECK(checked > 30000);
}

}  // namespace tracefire::test
