// SPDX-License-Identifier: Apache-2.0
// The script, start and end, and the list of devices.
#include "fake.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

namespace fake {
namespace {

std::recursive_mutex mutex;
std::shared_ptr<const Json> current;
std::map<std::pair<int, int>, std::unique_ptr<Handle>> handles;
std::atomic<int64_t> calls{0};

const Json& empty() {
  static const Json object = Json::object();
  return object;
}

}  // namespace

void reload() {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const char* path = std::getenv("TF_FAKE_NVML");
  // A file that has not changed is not read again: a long run must not grow.
  struct stat now {};
  static struct stat before {};
  if (path == nullptr || stat(path, &now) != 0) return;
  if (current != nullptr && now.st_ino == before.st_ino && now.st_size == before.st_size &&
      now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == before.st_mtim.tv_nsec) {
    return;
  }
  before = now;
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, false);
  // A file that is just being written is read the next time.
  if (!json.is_discarded() && json.is_object()) {
    // Old documents stay: another thread may still read one.
    static std::vector<std::shared_ptr<const Json>> kept;
    kept.push_back(current);
    current = std::make_shared<const Json>(std::move(json));
  }
}

const Json& config() {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (current == nullptr) reload();
  return current == nullptr ? empty() : *current;
}

int gpu_count() {
  const Json& c = config();
  if (c.contains("copies")) return c["copies"].get<int>();
  return c.contains("gpus") ? static_cast<int>(c["gpus"].size()) : 1;
}

const Json& gpu(int index) {
  const Json& c = config();
  if (!c.contains("gpus") || c["gpus"].empty()) return empty();
  const Json& gpus = c["gpus"];
  return gpus[std::min<size_t>(static_cast<size_t>(index), gpus.size() - 1)];
}

Handle* handle_of(int gpu_index, int instance) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  std::unique_ptr<Handle>& place = handles[{gpu_index, instance}];
  if (place == nullptr) place = std::make_unique<Handle>(Handle{gpu_index, instance});
  return place.get();
}

const Handle& at(void* device) { return *static_cast<Handle*>(device); }

int result(const char* function, void* device) {
  const Json& c = config();
  const int64_t call = ++calls;
  if (c.contains("hang") && c["hang"].value("function", "") == function) {
    const timespec time{c["hang"].value("seconds", 60), 0};
    nanosleep(&time, nullptr);
  }
  if (c.contains("fail_after") && call > c["fail_after"].value("calls", int64_t{0})) {
    return c["fail_after"].value("code", 15);
  }
  if (device != nullptr) {
    const Json& g = gpu(at(device).gpu);
    if (g.contains("fail")) {
      if (g["fail"].contains(function)) return g["fail"][function].get<int>();
      if (g["fail"].contains("*")) return g["fail"]["*"].get<int>();
    }
  }
  if (c.contains("fail") && c["fail"].contains(function)) return c["fail"][function].get<int>();
  return 0;
}

double value(void* device, const char* name, double other) {
  const Handle& handle = at(device);
  const Json* g = &gpu(handle.gpu);
  if (handle.instance >= 0) g = &(*g)["mig"][static_cast<size_t>(handle.instance)];
  if (!g->contains("values")) return other;
  return (*g)["values"].value(name, other);
}

double swinging(void* device, const char* name, double other) {
  const double wave = gpu(at(device).gpu).value("wave", 0.0);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double t = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  // Two swings of different length, and a phase of its own for each name and GPU.
  const double phase = static_cast<double>(std::strlen(name)) + at(device).gpu;
  const double swing = std::sin(t / 7 + phase) * 0.7 + std::sin(t / 2.3 + 2 * phase) * 0.3;
  return value(device, name, other) + wave * swing;
}

int copy_text(const std::string& text, char* out, unsigned length) {
  if (length < text.size() + 1) return 7;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return 0;
}

}  // namespace fake

using namespace fake;

TF_EXPORT int nvmlInit_v2() {
  reload();
  return config().value("init", 0);
}
TF_EXPORT int nvmlShutdown() { return 0; }
TF_EXPORT const char* nvmlErrorString(int code) {
  switch (code) {
    case 1:
      return "Uninitialized";
    case 3:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case 9:
      return "Driver Not Loaded";
    case 15:
      return "GPU is lost";
    case 18:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}
TF_EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return copy_text(config().value("driver", "580.159.04"), text, length);
}
TF_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  reload();
  if (const int code = result("nvmlDeviceGetCount_v2"); code != 0) return code;
  *count = static_cast<unsigned>(gpu_count());
  return config().value("count_result", 0);
}
TF_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (static_cast<int>(index) >= gpu_count()) return 2;
  *device = handle_of(static_cast<int>(index), -1);
  return result("nvmlDeviceGetHandleByIndex_v2", *device);
}
