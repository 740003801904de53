// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/snapshot.h"

#include "tools/doctor/frameworks.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

/// "library cuDNN" of nvidia-cudnn-cu12, "package torch" of torch.
std::string package_key(const std::string& dist) {
  std::string product = product_of_dist(dist);
  bool library = !product.empty() && framework_of(dist).empty() && product != "NumPy" &&
                 product.rfind("Keras", 0) != 0 && product.rfind("CUDA toolkit", 0) != 0;
  return library ? "library " + product : "package " + dist;
}

/// "cuDNN" of a manifest's "cuDNN", "cudnn", "libcudnn" and the like; cuBLASLt is a part of cuBLAS.
std::string library_key(const std::string& name) {
  std::string low = lower(name);
  if (low.rfind("lib", 0) == 0) low = low.substr(3);
  if (contains(low, "driver") || low == "cuda" || low == "nvml") return "";
  std::string product = product_of_dist("nvidia-" + low);
  return "library " + (product.empty() ? name : product);
}

void gpu_line(const std::string& line, Snapshot* out) {
  std::string number = between(line, "GPU ", ":"), rest = between(line, ": ", "");
  std::string prefix = "GPU " + number + " ";
  bool first = true;
  for (std::string_view part : split(rest, ',')) {
    std::string words(trim(part));
    if (first)
      out->values[prefix + "model"] = words;
    else if (words.rfind("compute capability ", 0) == 0)
      out->values[prefix + "capability"] = words.substr(19);
    else if (contains(words, " MiB in all"))
      out->values[prefix + "memory"] = words.substr(0, words.find(" MiB")) + " MiB";
    else if (words.rfind("compute mode ", 0) == 0)
      out->values[prefix + "compute mode"] = words.substr(13);
    else if (size_t equal = words.find(" is "); equal != words.npos)
      out->values[prefix + words.substr(0, equal)] = words.substr(equal + 4);
    first = false;
  }
}

/// The sentences of one environment.
struct Packages {
  std::map<std::string, std::string> values;
  bool active = false, framework = false;
};

/// "TensorFlow 2.20.0 (tensorflow 2.20.0) in /opt/venv, built for CUDA 12.5.1 and cuDNN 9".
bool package_line(const std::string& line, std::map<std::string, Packages>* all) {
  size_t open = line.find(" ("), in = line.find(") in ");
  if (open == line.npos || in == line.npos || in < open) return false;
  std::string inside = line.substr(open + 2, in - open - 2);
  std::string rest = line.substr(in + 5);
  size_t comma = rest.find(", built ");
  std::string prefix = rest.substr(0, comma);
  auto at = all->find(prefix);
  if (at == all->end()) return false;
  if (inside.rfind("conda's ", 0) == 0) inside = inside.substr(8);
  inside = inside.substr(0, inside.find(','));
  size_t space = inside.rfind(' ');
  if (space == inside.npos) return false;
  std::string dist = inside.substr(0, space), version = inside.substr(space + 1);
  at->second.values[package_key(dist)] = version;
  if (!framework_of(dist).empty()) at->second.framework = true;
  if (comma != rest.npos) at->second.values["build " + dist] = rest.substr(comma + 2);
  return true;
}

void system_line(const std::string& words, Snapshot* out) {
  bool first = true;
  for (std::string_view part : split(words, ',')) {
    std::string text(trim(part));
    if (text.rfind("kernel ", 0) == 0)
      out->values["kernel"] = text.substr(7);
    else if (text == "x86_64" || text == "aarch64")
      out->values["arch"] = text;
    else if (text == "WSL")
      out->values["container"] = "WSL";
    else if (first && text != "unknown")
      out->values["system"] = text;
    first = false;
  }
}

bool is_variable(const std::string& line) {
  size_t equal = line.find('=');
  if (equal == line.npos || equal == 0) return false;
  for (char c : line.substr(0, equal))
    if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
      return false;
  return true;
}

}  // namespace

void read_inventory(const std::vector<std::string>& lines, Snapshot* out) {
  std::map<std::string, Packages> environments;
  std::vector<std::string> order;
  int gpus = 0, instances = 0;
  for (const std::string& line : lines) {
    auto after = [&](std::string_view begin) {
      return std::string(trim(line.substr(begin.size())));
    };
    auto begins = [&](std::string_view begin) { return line.rfind(begin, 0) == 0; };
    if (begins("System: ")) {
      system_line(after("System: "), out);
    } else if (begins("Container: ")) {
      out->values["container"] = after("Container: ").substr(0, after("Container: ").find(' '));
    } else if (begins("GPU ") && contains(line, ": ")) {
      gpu_line(line, out);
      ++gpus;
    } else if (begins("Driver: kernel module ") || begins("Driver of Windows: ")) {
      std::string words = after(line.substr(0, line.find(':') + 1));
      if (words.rfind("kernel module ", 0) == 0) words = words.substr(14);
      out->values["driver"] = words.substr(0, words.find(','));
      if (contains(words, ", ")) out->values["driver flavour"] = words.substr(words.find(", ") + 2);
    } else if (begins("Device nodes: ")) {
      out->values["device nodes"] = after("Device nodes: ");
    } else if (begins("MIG instance: ")) {
      ++instances;
    } else if (begins("CUDA toolkit ") && contains(line, ": /")) {
      out->values["toolkit at " + line.substr(line.find(": /") + 2)] =
          line.substr(13, line.find(": /") - 13);
    } else if (begins("System package ")) {
      std::string words = after("System package ");
      size_t space = words.find(' ');
      if (space != words.npos)
        out->values["system package " + words.substr(0, space)] =
            words.substr(space + 1, words.find(" (") - space - 1);
    } else if (begins("Environment ") && contains(line, ": ")) {
      std::string prefix = between(line, "Environment ", ":");
      Packages& env = environments[prefix];
      order.push_back(prefix);
      env.active = contains(line, ", the active one");
      if (std::string python = between(line, ", Python ", ","); !python.empty())
        env.values["python"] = python;
    } else if (is_variable(line)) {
      out->values["variable " + line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
    } else {
      package_line(line, &environments);
    }
  }
  if (gpus > 0) out->values["GPU count"] = std::to_string(gpus);
  if (instances > 0) out->values["MIG instances"] = std::to_string(instances);
  const Packages* chosen = nullptr;
  for (bool active : {true, false})
    for (const std::string& prefix : order) {
      const Packages& env = environments[prefix];
      if (chosen != nullptr || (active ? !env.active : !env.framework)) continue;
      chosen = &env;
      out->environment = prefix;
    }
  if (chosen != nullptr)
    for (const auto& [key, value] : chosen->values) out->values[key] = value;
}

void read_manifest(const Document& document, const Data& data, Snapshot* out) {
  std::vector<std::string> ignored = texts_of(data.diff(), "ignored");
  int gpus = 0;
  for (const auto& entry : document.values) {
    const std::string &path = entry.first, &value = entry.second;
    std::vector<std::string> parts;
    for (std::string_view part : split(path, '.')) parts.emplace_back(part);
    const std::string &first = parts.front(), &last = parts.back();
    std::string low = lower(first);
    bool skip = false;
    for (const std::string& name : ignored) skip |= lower(last) == name || low == name;
    if (skip) continue;
    if (value == "[]") {  // it was asked for, and there is none
      if (contains(low, "gpu") && parts.size() == 1) out->values["GPU count"] = "0";
      continue;
    }
    auto set = [&](const std::string& key) {
      if (!key.empty()) out->values[key] = value;
    };
    auto middle = [&] {  // "cuDNN" of "libraries.cuDNN.version"
      std::string name = path.substr(first.size() + 1);
      if (last == "version" || last == "value") name = name.substr(0, name.rfind('.'));
      return name;
    };
    bool versions = low == "packages" || low == "versions" || low == "frameworks";
    bool libraries = contains(low, "librar");
    if (low == "driver" || low == "driver_version" || path == "driver.version") {
      set("driver");
    } else if (contains(low, "gpu") && parts.size() > 2) {
      std::string number = parts[1];
      if (last == "name" || last == "model") set("GPU " + number + " model"), ++gpus;
      if (last == "capability" || last == "compute_capability")
        set("GPU " + number + " capability");
      if (last == "memory_bytes" && is_version(value) && value.size() < 18)
        out->values["GPU " + number + " memory"] =
            std::to_string(std::stoull(value) >> 20) + " MiB";
    } else if (low == "gpu" || path == "gpu.name") {
      set("GPU 0 model");
    } else if (libraries && parts.size() > 1) {
      if (last == "version" || parts.size() == 2) set(library_key(middle()));
    } else if (low == "cuda" && parts.size() > 1) {
      set(last == "version" ? "library CUDA runtime" : library_key(middle()));
    } else if (versions && parts.size() > 1) {
      set(package_key(normal_name(middle())));
    } else if (low == "settings" && parts.size() > 1) {
      if (last == "value" || parts.size() == 2) set("setting " + middle());
    } else if (low == "python") {
      set(parts.size() == 1 || last == "version" ? "python" : "package " + normal_name(last));
    } else if (low == "tracefire") {
      set(last == "commit" ? "commit of tracefire" : "package tracefire");
    } else if (path == "platform.system") {
      set("system");
    } else if (path == "platform.kernel") {
      out->values["kernel"] = value.rfind("Linux ", 0) == 0 ? value.substr(6) : value;
    } else if (path == "platform.machine") {
      set("arch");
    } else {
      set(path);
    }
  }
  if (gpus > 0) out->values["GPU count"] = std::to_string(gpus);
}

}  // namespace tracefire::doctor
