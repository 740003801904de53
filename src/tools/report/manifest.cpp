// SPDX-License-Identifier: Apache-2.0
#include "tools/report/manifest.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/nvidia/stack.h"
#include "core/base/settings.h"

namespace tracefire::report {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

/// PRETTY_NAME of os-release: "Debian GNU/Linux 12 (bookworm)".
std::string system_name() {
  std::ifstream file("/etc/os-release");
  constexpr std::string_view kKey = "PRETTY_NAME=";
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(kKey, 0) != 0) continue;
    std::string name = line.substr(kKey.size());
    if (name.size() >= 2 && name.front() == '"') name = name.substr(1, name.size() - 2);
    return name;
  }
  return "";
}

/// "AMD EPYC 9654 96-Core Processor".
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

Json platform_json(const EngineFacts& engine) {
  utsname names{};
  ::uname(&names);
  Json out = {{"system", text_or_null(system_name())},
              {"kernel", std::string(names.sysname) + " " + names.release},
              {"machine", names.machine}};
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGE_SIZE);
  const int64_t bytes = pages > 0 && page > 0 ? int64_t{pages} * page : 0;
  out["processor"] = text_or_null(engine.processor.empty() ? processor_name() : engine.processor);
  out["instructions"] = text_or_null(engine.instructions);
  out["memory_bytes"] = engine.memory_bytes > 0 ? Json(engine.memory_bytes) : Json(bytes);
  return out;
}

/// "13.0" of 13000.
std::string cuda_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Json gpus_json(const nvidia::Inventory& inventory) {
  Json list = Json::array();
  int usable = 0;
  for (const nvidia::Gpu& gpu : inventory.gpus) {
    const bool used = inventory.usable() && gpu.refusal.empty();
    list.push_back({{"device", used ? Json("/GPU:" + std::to_string(usable)) : Json()},
                    {"name", gpu.name},
                    {"capability", std::to_string(gpu.capability / 10) + "." +
                                       std::to_string(gpu.capability % 10)},
                    {"memory_bytes", gpu.memory_bytes},
                    {"uuid", text_or_null(gpu.uuid)}});
    if (used) ++usable;
  }
  return list;
}

const char* library_name(nvidia::Library library) {
  using nvidia::Library;
  switch (library) {
    case Library::kDriver:
      return "NVIDIA driver";
    case Library::kNvml:
      return "NVML";
    case Library::kNvrtc:
      return "NVRTC";
    case Library::kCublasLt:
      return "cuBLASLt";
    case Library::kCublas:
      return "cuBLAS";
    case Library::kCudnn:
      return "cuDNN";
    case Library::kNccl:
      return "NCCL";
    case Library::kCupti:
      return "CUPTI";
  }
  return "";
}

Json library_json(const std::string& name, const std::string& version, const std::string& path,
                  const std::string& origin, bool in_use) {
  return {{"name", name},
          {"version", text_or_null(version)},
          {"path", path},
          {"origin", origin},
          {"in_use", in_use}};
}

/// Those in use, then the others that a program here would find.
Json libraries_json(const EngineFacts& engine, bool all) {
  Json list = Json::array();
  std::vector<std::string> names;
  for (const EngineFacts::Library& used : engine.libraries) {
    list.push_back(library_json(used.name, used.version, used.path, used.origin, true));
    names.push_back(used.name);
  }
  if (!all) return list;
  nvidia::Search search(nvidia::SearchOptions::from_environment());
  const Result<int> major = nvidia::Stack::instance().cuda_major();
  for (const nvidia::Library library : nvidia::all_libraries()) {
    const std::string name = library_name(library);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    for (const int wanted : major.ok() ? std::vector<int>{*major} : std::vector<int>{13, 12}) {
      const Result<nvidia::OpenLibrary> found = search.open(library, wanted);
      if (!found.ok()) continue;
      const std::string version =
          found->version == 0 ? "" : nvidia::version_text(library, found->version);
      list.push_back(library_json(name, version, found->path, found->origin, false));
      break;
    }
  }
  return list;
}

Json settings_json() {
  Json list = Json::array();
  for (const SettingRow& row : kSettingTable) {
    const std::string value = setting_text(row.name).value();
    if (value == row.fallback) continue;
    const char* source = setting_source_name(setting_source(row.name).value());
    list.push_back({{"name", row.name}, {"value", value}, {"source", source}});
  }
  return list;
}

}  // namespace

std::string utc_text(std::time_t at) {
  std::tm parts{};
  ::gmtime_r(&at, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string utc_now() { return utc_text(std::time(nullptr)); }

std::string manifest(const ManifestFacts& facts, const EngineFacts& engine) {
  const nvidia::Inventory none{};
  const nvidia::Inventory& inventory = facts.driver ? nvidia::Stack::instance().inventory() : none;
  Json out = {{"schema", "tracefire.manifest/1"}, {"time", utc_now()}};
  out["tracefire"] = {{"version", TRACEFIRE_VERSION}, {"commit", text_or_null(facts.commit)}};
  out["platform"] = platform_json(engine);
  out["python"] = nullptr;
  out["driver"] = text_or_null(inventory.driver_version);
  out["driver_cuda"] =
      inventory.cuda_version == 0 ? Json() : Json(cuda_text(inventory.cuda_version));
  out["gpus"] = gpus_json(inventory);
  out["why_no_gpu"] =
      text_or_null(engine.why_no_gpu.empty() && inventory.problem ? inventory.problem->line()
                                                                  : engine.why_no_gpu);
  out["libraries"] = libraries_json(engine, facts.all_libraries);
  out["seed"] = facts.seed ? Json(*facts.seed) : Json();
  out["precision"] =
      engine.precision.empty() ? setting_text("matmul_precision").value() : engine.precision;
  out["settings"] = settings_json();
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tracefire::report
