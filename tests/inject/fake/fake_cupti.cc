// SPDX-License-Identifier: Apache-2.0
// libcupti of the tests: the functions that the injected library calls, and functions with which a
// program says what CUPTI is to report. Environment:
//   TF_FAKE_CUPTI_VERSION   what cuptiGetVersion says        (130001)
//   TF_FAKE_CUPTI_TAKEN     cuptiSubscribe says that another tool subscribes
//   TF_FAKE_CUPTI_DROPS     every tenth record is dropped
//   TF_FAKE_CUPTI_FAIL      cuptiActivityEnable fails
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tools/inject/cupti_api.h"

using namespace tracefire::inject;

#define TF_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::mutex mutex;
void (*requested)(uint8_t**, size_t*, size_t*) = nullptr;
void (*completed)(void*, uint32_t, uint8_t*, size_t, size_t) = nullptr;
bool enabled[64];
uint8_t* buffer = nullptr;
size_t capacity = 0;
size_t used = 0;
size_t dropped = 0;

// Real records are longer than what the library declares, and differ in length by kind.
constexpr size_t length_of(uint32_t kind) {
  switch (kind) {
    case kActivityConcurrentKernel:
      return 216;
    case kActivityMemcpy:
    case kActivityMemcpyPeer:
      return 96;
    case kActivityMemset:
      return 88;
    case kActivityMemory:
      return 128;
    case kActivityDevice:
      return 184;
    case kActivityGraphTrace:
      return 56;
    default:
      return 40;
  }
}

// The caller holds the lock; it is let go for the callback.
void deliver(std::unique_lock<std::mutex>& lock) {
  if (buffer == nullptr || used == 0) return;
  uint8_t* full = buffer;
  const size_t size = capacity;
  const size_t valid = used;
  buffer = nullptr;
  used = capacity = 0;
  lock.unlock();
  completed(nullptr, 0, full, size, valid);
  lock.lock();
}

}  // namespace

/// Reports one record, whose first bytes are given.
TF_EXPORT void tf_fake_record(const void* begin, size_t size) {
  std::unique_lock<std::mutex> lock(mutex);
  const uint32_t kind = *static_cast<const uint32_t*>(begin);
  if (requested == nullptr || kind >= 64 || !enabled[kind]) return;
  const size_t length = length_of(kind);
  if (buffer != nullptr && capacity - used < length) deliver(lock);
  if (buffer == nullptr) {
    size_t most = 0;
    lock.unlock();
    uint8_t* fresh = nullptr;
    size_t fresh_size = 0;
    requested(&fresh, &fresh_size, &most);
    lock.lock();
    buffer = fresh;
    capacity = fresh_size;
    used = 0;
  }
  static const bool drops = std::getenv("TF_FAKE_CUPTI_DROPS") != nullptr;
  static int seen = 0;
  if (buffer == nullptr || capacity < length || (drops && ++seen % 10 == 0)) {
    ++dropped;
    return;
  }
  std::memset(buffer + used, 0, length);
  std::memcpy(buffer + used, begin, size < length ? size : length);
  used += length;
}

TF_EXPORT int cuptiGetVersion(uint32_t* version) {
  const char* value = std::getenv("TF_FAKE_CUPTI_VERSION");
  *version = value == nullptr ? 130001u : static_cast<uint32_t>(std::atoi(value));
  return 0;
}
TF_EXPORT int cuptiGetResultString(int code, const char** words) {
  *words = code == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR_UNKNOWN";
  return 0;
}
TF_EXPORT int cuptiGetTimestamp(uint64_t* nanoseconds) {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  *nanoseconds = static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
  return 0;
}
TF_EXPORT int cuptiSubscribe(void** subscriber, void (*)(void*, int, uint32_t, const void*),
                             void*) {
  static int one = 0;
  *subscriber = &one;
  return std::getenv("TF_FAKE_CUPTI_TAKEN") == nullptr ? 0 : 39;
}
TF_EXPORT int cuptiUnsubscribe(void*) { return 0; }
TF_EXPORT int cuptiActivityRegisterCallbacks(void (*request)(uint8_t**, size_t*, size_t*),
                                             void (*complete)(void*, uint32_t, uint8_t*, size_t,
                                                              size_t)) {
  requested = request;
  completed = complete;
  return 0;
}
TF_EXPORT int cuptiActivityEnable(uint32_t kind) {
  if (std::getenv("TF_FAKE_CUPTI_FAIL") != nullptr) return 999;
  enabled[kind & 63] = true;
  return 0;
}
TF_EXPORT int cuptiActivityEnableRuntimeApi(uint32_t, uint8_t) {
  enabled[kActivityRuntime] = true;
  return 0;
}
TF_EXPORT int cuptiActivityEnableDriverApi(uint32_t, uint8_t) {
  enabled[kActivityDriver] = true;
  return 0;
}
TF_EXPORT int cuptiActivityFlushAll(uint32_t) {
  std::unique_lock<std::mutex> lock(mutex);
  if (completed != nullptr) deliver(lock);
  return 0;
}
TF_EXPORT int cuptiActivityGetNextRecord(uint8_t* data, size_t valid, void** record) {
  size_t next = 0;
  if (*record != nullptr) {
    auto* at = static_cast<uint8_t*>(*record);
    next = static_cast<size_t>(at - data) + length_of(*static_cast<uint32_t*>(*record));
  }
  if (next >= valid) return 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
  *record = data + next;
  return 0;
}
TF_EXPORT int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) {
  *count = dropped;
  dropped = 0;
  return 0;
}
