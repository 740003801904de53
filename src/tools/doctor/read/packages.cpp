// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/read/packages.h"

#include <nlohmann/json.hpp>

#include "tools/doctor/read/document.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* key) {
  auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

/// Depth is bounded, so that a hostile file cannot use up the stack.
Json parse_json(std::string_view text) {
  if (too_deep(text)) return Json();
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) parsed = Json();
  return parsed;
}

/// Value of "name = 'x'", "('name', 'x')" or "\"name\": 'x'"; quotes removed. "" where it is not.
std::string python_value(std::string_view text, std::string_view name) {
  for (size_t at = 0; (at = text.find(name, at)) != text.npos; at += name.size()) {
    auto is_name = [](char c) {
      return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    size_t end = at + name.size();
    if ((at > 0 && is_name(text[at - 1])) || (end < text.size() && is_name(text[end]))) continue;
    std::string_view rest = text.substr(end);
    size_t skip = rest.find_first_not_of("\"' \t");
    if (skip == rest.npos) continue;
    // A type annotation: "cuda: Optional[str] = '12.8'".
    if (rest[skip] == ':' && contains(rest.substr(0, rest.find('\n')), "=")) skip = rest.find('=');
    if (rest[skip] != '=' && rest[skip] != ',' && rest[skip] != ':') continue;
    rest = trim(rest.substr(skip + 1, 400));
    if (rest.empty()) continue;
    if (rest[0] == '\'' || rest[0] == '"')
      return std::string(rest.substr(1, rest.find(rest[0], 1) - 1));
    if (rest[0] == '[') return std::string(rest.substr(0, rest.find(']')));
    return std::string(trim(rest.substr(0, rest.find_first_of(",)\n}"))));
  }
  return "";
}

/// Value of a line "NAME = 'x'" or "NAME: Optional[str] = 'x'"; quotes removed. "" where none is.
/// Other lines may hold the name too: __all__ = ['cuda', 'hip'].
std::string assigned_value(std::string_view text, std::string_view name) {
  for (std::string_view line : lines_of(text, 2000)) {
    if (line.rfind(name, 0) != 0) continue;
    std::string_view rest = line.substr(name.size());
    size_t equal = rest.find('=');
    std::string_view between_them = trim(rest.substr(0, equal));
    if (equal == rest.npos || (!between_them.empty() && between_them[0] != ':')) continue;
    rest = trim(rest.substr(equal + 1, 400));
    if (rest.empty()) continue;
    if (rest[0] == '\'' || rest[0] == '"')
      return std::string(rest.substr(1, rest.find(rest[0], 1) - 1));
    return std::string(trim(rest.substr(0, rest.find('#'))));
  }
  return "";
}

}  // namespace

std::string normal_name(std::string_view name) {
  std::string out;
  for (char c : lower(trim(name))) {
    bool dash = c == '_' || c == '-' || c == '.';
    if (dash && (out.empty() || out.back() == '-')) continue;
    out += dash ? '-' : c;
  }
  return out;
}

DistMetadata parse_metadata(std::string_view text) {
  DistMetadata out;
  for (std::string_view line : lines_of(text, 5000)) {
    if (trim(line).empty()) break;
    size_t colon = line.find(':');
    if (colon == line.npos) continue;
    std::string key = lower(trim(line.substr(0, colon)));
    std::string value(trim(line.substr(colon + 1)));
    if (value.size() > 1000) value.resize(1000);
    if (key == "name" && out.name.empty()) out.name = value;
    if (key == "version" && out.version.empty()) out.version = value;
    if (key == "requires-python") out.requires_python = value;
    if (key == "requires-dist" && out.requires_dist.size() < 1000)
      out.requires_dist.push_back(value);
  }
  return out;
}

Requirement parse_requirement(std::string_view line) {
  Requirement out;
  size_t semicolon = line.find(';');
  std::string_view front = trim(line.substr(0, semicolon));
  if (semicolon != line.npos) {
    out.marker = std::string(trim(line.substr(semicolon + 1)));
    size_t at = out.marker.find("extra");
    if (at != std::string::npos) {
      std::string_view rest = std::string_view(out.marker).substr(at);
      size_t quote = rest.find_first_of("\"'");
      if (quote != rest.npos)
        out.extra =
            std::string(rest.substr(quote + 1, rest.find(rest[quote], quote + 1) - quote - 1));
    }
  }
  size_t end = front.find_first_of("<>=!~ ([");
  out.name = normal_name(front.substr(0, end));
  size_t begin = front.find_first_of("<>=!~");
  if (begin != front.npos)
    out.conditions = replace_all(std::string(trim(front.substr(begin))), ")", "");
  return out;
}

std::vector<std::string> parse_record(std::string_view text, size_t limit) {
  std::vector<std::string> paths;
  for (std::string_view line : lines_of(text, limit)) {
    std::string_view path = line.substr(0, line.find(','));
    if (line.size() > 1 && line[0] == '"') path = line.substr(1, line.find('"', 1) - 1);
    if (!path.empty()) paths.emplace_back(path);
  }
  return paths;
}

CondaPackage parse_conda_meta(std::string_view text) {
  Json parsed = parse_json(text);
  std::string build = text_of(parsed, "build");
  if (build.empty()) build = text_of(parsed, "build_string");
  return {normal_name(text_of(parsed, "name")), text_of(parsed, "version"), build};
}

std::map<std::string, SystemPackage> parse_dpkg_status(std::string_view text,
                                                       const std::vector<std::string>& prefixes) {
  std::map<std::string, SystemPackage> out;
  std::string name;
  for (std::string_view line : lines_of(text, 2000000)) {
    if (line.rfind("Package: ", 0) == 0) {
      name = std::string(trim(line.substr(9)));
      bool wanted = false;
      for (const std::string& prefix : prefixes) wanted |= name.rfind(prefix, 0) == 0;
      if (!wanted) name.clear();
    } else if (!name.empty() && line.rfind("Status: ", 0) == 0) {
      out[name].state = std::string(trim(line.substr(line.rfind(' '))));
    } else if (!name.empty() && line.rfind("Version: ", 0) == 0) {
      std::string_view version = trim(line.substr(9));
      if (contains(version, ":")) version.remove_prefix(version.find(':') + 1);
      out[name].version = std::string(version.substr(0, version.find('-')));
    }
  }
  return out;
}

std::map<std::string, std::string> parse_assignments(std::string_view text) {
  std::map<std::string, std::string> out;
  for (std::string_view line : lines_of(text, 1000)) {
    size_t equal = line.find('=');
    if (equal == line.npos) continue;
    std::string_view value = trim(line.substr(equal + 1));
    if (value.size() >= 2 && (value[0] == '"' || value[0] == '\''))
      value = value.substr(1, value.find(value[0], 1) - 1);
    out[lower(trim(line.substr(0, equal)))] = std::string(value);
  }
  return out;
}

BuildInfo parse_tensorflow_build(std::string_view text) {
  BuildInfo out;
  std::string cuda = python_value(text, "is_cuda_build");
  out.known = !cuda.empty();
  out.cuda = cuda == "True";
  out.rocm = python_value(text, "is_rocm_build") == "True";
  out.cuda_version = python_value(text, "cuda_version");
  out.cudnn_version = python_value(text, "cudnn_version");
  std::string list = python_value(text, "cuda_compute_capabilities");
  for (std::string_view item : split(list, ',')) {
    size_t begin = item.find_first_not_of("[ '\"");
    if (begin == item.npos) continue;
    item = item.substr(begin, item.find_last_not_of("] '\"") - begin + 1);
    if (item.rfind("sm_", 0) == 0) out.sass.emplace_back(item.substr(3));
    if (item.rfind("compute_", 0) == 0) out.ptx.emplace_back(item.substr(8));
    if (is_version(item)) {  // older form "7.5": SASS, and PTX of the last
      std::string number = replace_all(std::string(item), ".", "");
      out.sass.push_back(number);
    }
  }
  return out;
}

BuildInfo parse_torch_version(std::string_view text) {
  BuildInfo out;
  out.framework_version = assigned_value(text, "__version__");
  std::string cuda = assigned_value(text, "cuda"), hip = assigned_value(text, "hip");
  out.known = !cuda.empty() || !out.framework_version.empty();
  out.rocm = !hip.empty() && hip != "None";
  out.cuda = !cuda.empty() && cuda != "None";
  if (out.cuda) out.cuda_version = cuda;
  if (cuda.empty()) {  // an older file without the line: the local part tells
    std::string local = local_part(out.framework_version);
    out.cuda = local.rfind("cu", 0) == 0;
    if (local.empty()) out.known = false;
  }
  return out;
}

std::vector<std::string> parse_kernel_argv(std::string_view text) {
  std::vector<std::string> out;
  Json parsed = parse_json(text);
  if (!parsed.is_object() || !parsed.contains("argv") || !parsed["argv"].is_array()) return out;
  for (const Json& item : parsed["argv"])
    if (item.is_string() && out.size() < 32) out.push_back(item.get<std::string>());
  return out;
}

std::string parse_cuda_version(std::string_view text) {
  Json parsed = parse_json(text);
  if (parsed.is_object() && parsed.contains("cuda")) return text_of(parsed["cuda"], "version");
  return find_version(text);
}

std::string parse_cudnn_header(std::string_view text) {
  std::string version;
  for (std::string_view part : {"CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"}) {
    std::string value = between(text, "#define " + std::string(part), "\n");
    if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos) return "";
    version += (version.empty() ? "" : ".") + value;
  }
  return version;
}

}  // namespace tracefire::doctor
