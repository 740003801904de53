// SPDX-License-Identifier: Apache-2.0
//
// Facts of a framework's log. Plain texts are data (data/logs.json); here are the lines that carry
// values.
#include "tools/doctor/derive.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

/// "9.1.0" as it is; "7.2.1" of 7201, the way of TensorFlow 1.
std::string cudnn_number(const std::string& text) {
  std::string_view digits = trim(text);
  if (!digits.empty() && digits[0] == ':') digits = trim(digits.substr(1));
  digits = digits.substr(0, digits.find_first_not_of("0123456789"));
  if (digits.size() == 4)
    return std::string(digits.substr(0, 1)) + "." + std::string(digits.substr(1, 1)) + "." +
           std::string(digits.substr(3, 1));
  return find_version(text);
}

/// "12.0" of "sm_120".
std::string capability_of_sm(std::string_view text) {
  std::string digits(text.substr(0, text.find_first_not_of("0123456789")));
  return digits.size() < 2
             ? ""
             : digits.substr(0, digits.size() - 1) + "." + digits.substr(digits.size() - 1);
}

void cudnn_line(std::string_view line, const std::string& words, Facts* f) {
  if (!contains(line, "Loaded runtime CuDNN library:") || f->has("log.cudnn_loaded")) return;
  std::string loaded = cudnn_number(between(line, "Loaded runtime CuDNN library:", "b"));
  std::string built = cudnn_number(between(line, "compiled with", "\n"));
  f->set("log.cudnn_loaded", loaded, words);
  f->set("log.cudnn_built", built);
  // TensorFlow 1 wrote 7201 for 7.2.1 and needed the very minor version, like a major one.
  bool old_words = contains(line, "compatibility version");
  bool same_major = major_of(loaded) == major_of(built) &&
                    !(old_words && leading(loaded, 2) != leading(built, 2));
  if (!loaded.empty() && !built.empty())
    f->set(same_major ? "log.cudnn_minor" : "log.cudnn_major", "yes", words);
}

/// A framework that an installer looked for in vain: "tensorflow==2.18.0", "tensorflow (2.18.0)".
void want(const std::string& requirement, const std::string& words, Facts* f) {
  std::string name(trim(requirement));
  name = name.substr(std::min(name.size(), name.find_first_not_of("`'\"")));
  const std::string id = framework_of(name.substr(0, name.find_first_of("(`'\";,: ")));
  if (f->has("log.wanted") || id.empty()) return;
  f->set("log.wanted", id, words);
  f->set("log.no_distribution", "yes", words);
  std::string release = between(name, "==", " `;,*@");
  if (release.empty() && contains(name, " (") && !contains(name, "from versions"))
    release = between(name, " (", ")");
  while (!release.empty() && release.back() == '.') release.pop_back();
  if (is_version(release)) f->set("log.wanted_release", release);
}

/// "3.14" of "cp314".
std::string python_of_tag(std::string_view tag) {
  std::string digits(tag.substr(0, tag.find_first_not_of("0123456789")));
  return digits.size() < 2 ? "" : digits.substr(0, 1) + "." + digits.substr(1);
}

/// uv explains over several lines, broken where the terminal ends.
void uv_words(const std::string& log, const std::string& name, Facts* f) {
  size_t at = std::min(log.find("No solution found when resolving"),
                       log.find("have a source distribution or wheel for the current platform"));
  if (at == log.npos) return;
  at = at < 400 ? 0 : at - 400;
  std::string flat;
  for (std::string_view line : lines_of(std::string_view(log).substr(at, 16384)))
    if (!trim(line).empty()) flat += std::string(flat.empty() ? "" : " ") + std::string(trim(line));
  auto words = [&](size_t from) {
    return name + " says: " + flat.substr(from, std::min<size_t>(300, flat.size() - from));
  };
  for (std::string_view verb :
       {" has no wheels with a matching ", " have no wheels with a matching "})
    if (size_t end = flat.find(verb); end != flat.npos) {
      size_t begin = flat.rfind(' ', end - 1);
      begin = begin == flat.npos ? 0 : begin + 1;
      want(flat.substr(begin, end - begin), words(begin), f);
    }
  for (std::string_view before : {"istribution `", "you require ", "your project depends on "})
    if (size_t begin = flat.find(before); begin != flat.npos)
      want(between(std::string_view(flat).substr(begin), before, "` "), words(begin), f);
  std::string python = python_of_tag(between(flat, "tag (e.g., `cp", "`"));
  for (std::string_view before :
       {"You require CPython ", "You're using CPython ", "current Python version ("})
    if (python.empty()) python = leading(find_version(between(flat, before, ")`") + " "), 2);
  if (!python.empty()) f->set("log.python", python);
}

void import_line(std::string_view line, const std::string& words, Facts* f) {
  if (contains(line, "No module named") && !f->has("log.no_module")) {
    std::string name = between(line, "No module named ", "\n");
    name = name.substr(std::min(name.size(), name.find_first_not_of("'\"")));
    name = name.substr(0, name.find_first_of("'\". \n"));
    static const std::set<std::string> kModules = {"tensorflow", "torch", "jax",
                                                   "jaxlib",     "keras", "tracefire"};
    if (kModules.count(name) != 0) f->set("log.no_module", name, words);
  }
  for (std::string_view before : {"No matching distribution found for ",
                                  "Could not find a version that satisfies the requirement ",
                                  "Unable to find installation candidates for ",
                                  "nothing provides requested ", "Unable to find candidates for "})
    if (contains(line, before)) want(between(line, before, "\n"), words, f);
  if (contains(line, "does not provide the extra 'and-cuda'"))
    f->set("log.extra_release", between(line, "tensorflow ", " "), words);
}

/// A library of CUDA that the loader did not find, in the words of TensorFlow, Python and glibc.
void library_line(std::string_view line, const std::string& words, Facts* f) {
  std::string library;
  if (contains(line, "Could not load dynamic library '")) {
    library = between(line, "Could not load dynamic library '", "'");
  } else if (size_t end = line.find(": cannot open shared object file"); end != line.npos) {
    std::string_view before = line.substr(0, end);
    size_t begin = before.find_last_of(" '\":(");
    library = std::string(before.substr(begin == before.npos ? 0 : begin + 1));
    static const std::set<std::string> kStems = {
        "libcuda",   "libcudart",    "libcublas",     "libcublasLt",   "libcudnn",    "libcufft",
        "libcurand", "libcusolver",  "libcusparse",   "libcusparseLt", "libnccl",     "libnvrtc",
        "libcupti",  "libnvJitLink", "libnvToolsExt", "libcudnn_ops",  "libcudnn_cnn"};
    if (kStems.count(library.substr(0, library.find(".so"))) == 0) return;
  }
  if (library.empty()) return;
  f->set("log.library", library, words);
  if (library.rfind("libcuda.so", 0) == 0 && !f->has("log.libcuda"))
    f->set("log.libcuda", "yes", words);
}

/// What a framework says about the capability of the GPU and of its own code.
void capability_line(std::string_view line, const std::string& words, Facts* f) {
  auto judge = [&](const std::string& own, const std::string& least, const std::string& most) {
    if (own.empty()) return;
    if (!least.empty() && compare_versions(own, least) < 0) f->set("log.cc_old", own, words);
    if (!most.empty() && compare_versions(own, most) > 0) f->set("log.cc_new", own, words);
  };
  if (contains(line, "with CUDA capability sm_"))
    f->set("log.cc", capability_of_sm(between(line, "with CUDA capability sm_", " ")), words);
  if (contains(line, "install supports CUDA capabilities sm_") && f->has("log.cc")) {
    std::string least, most;
    for (std::string_view word : split(line, ' ')) {
      if (word.rfind("sm_", 0) != 0) continue;
      std::string own = capability_of_sm(word.substr(3));
      if (least.empty() || compare_versions(own, least) < 0) least = own;
      if (most.empty() || compare_versions(own, most) > 0) most = own;
    }
    judge(f->get("log.cc"), least, most);
  }
  if (contains(line, "compatible with compute capability "))
    f->set("log.cc_new", find_version(between(line, "compatible with compute capability ", "\n")),
           words);
  if (contains(line, "of cuda capability ")) {
    f->set("log.cc", find_version(between(line, "of cuda capability ", "\n")), words);
    if (contains(line, "too old")) f->set("log.cc_old", f->get("log.cc"), words);
  }
  if (contains(line, "no longer supports this GPU") && f->has("log.cc"))
    f->set("log.cc_old", f->get("log.cc"), words);
  // The range stands in the same line or, in newer releases, in one of its own.
  const bool begins_range = contains(line, "cuda capability supported by");
  const bool own_line = f->has("log.cc_range") && !trim(line).empty() && trim(line)[0] == '(';
  f->set("log.cc_range", begins_range ? "yes" : "");
  if ((begins_range || own_line) && f->has("log.cc")) {
    std::string range = replace_all(
        begins_range ? between(line, "supported by", "\n") : std::string(line), "(", " ");
    range = replace_all(range, ")", " ");
    std::string least = find_version(range);
    size_t dash = range.find(" - ");
    std::string most = dash == range.npos ? "" : find_version(range.substr(dash + 3));
    judge(f->get("log.cc"), least, most);
  }
  if (contains(line, "Ignoring visible gpu device"))
    judge(find_version(between(line, "compute capability:", ",)")),
          find_version(between(line, "minimum required Cuda capability is", "\n")), "");
}

/// TensorFlow's own diagnosis after cuInit failed.
void diagnosis_line(std::string_view line, const std::string& words, Facts* f) {
  if (contains(line, "libcuda reported version is:"))
    f->set("log.dso_version", find_version(between(line, "reported version is:", "\n")), words);
  if (contains(line, "kernel reported version is:"))
    f->set("log.kernel_version", find_version(between(line, "reported version is:", "\n")), words);
  std::string dso = f->get("log.dso_version"), kernel = f->get("log.kernel_version");
  if (!dso.empty() && !kernel.empty() && compare_versions(dso, kernel) != 0 &&
      !f->has("log.dso_mismatch"))
    f->set("log.dso_mismatch", "yes", words);
  if (contains(line, "CUDA_VISIBLE_DEVICES=\"")) {
    std::string value = between(line, "CUDA_VISIBLE_DEVICES=\"", "\"");
    if (value.empty() || value[0] == '-') f->set("log.cvd", value.empty() ? "empty" : value, words);
  }
  // PyTorch names who else holds memory: "Process 4242 has 20.05 GiB memory in use".
  if (size_t at = line.find("Process "); at != line.npos && contains(line, "memory in use")) {
    std::string number(line.substr(at + 8, line.substr(at + 8).find(' ')));
    if (!number.empty() && number.find_first_not_of("0123456789") == std::string::npos)
      f->set("log.memory_holder", number, words);
  }
}

}  // namespace

void log_facts(const Machine& m, const Data& data, Facts* f) {
  if (m.log.empty()) return;
  f->set("log", "yes");
  std::vector<std::string> harmless = texts_of(data.logs(), "harmless");
  std::vector<std::pair<std::string, std::vector<std::string>>> patterns;
  if (data.logs().contains("patterns") && data.logs()["patterns"].is_array())
    for (const Json& row : data.logs()["patterns"])
      patterns.emplace_back(text_of(row, "fact"), texts_of(row, "contains"));
  for (std::string_view line : lines_of(m.log, 400000)) {
    if (line.size() > 4000) line = line.substr(0, 4000);
    std::string words = m.log_name + " says: " + std::string(trim(line.substr(0, 300)));
    bool noise = false;
    for (const std::string& text : harmless) noise |= contains(line, text);
    if (noise && !f->has("log.harmless")) f->set("log.harmless", "yes", words);
    if (noise) continue;
    for (const auto& [fact, texts] : patterns) {
      if (fact.empty() || f->has(fact)) continue;
      for (const std::string& text : texts)
        if (contains(line, text)) f->set(fact, "yes", words);
    }
    cudnn_line(line, words, f);
    import_line(line, words, f);
    library_line(line, words, f);
    capability_line(line, words, f);
    diagnosis_line(line, words, f);
  }
  uv_words(m.log, m.log_name, f);
}

}  // namespace tracefire::doctor
