// SPDX-License-Identifier: Apache-2.0
//
// The part of CUPTI's binary interface that is used. CUPTI's headers are in no header package of
// the build, and records only ever grow at their end: the beginnings declared here are the same in
// CUPTI 12.0 (API 19) to 13.0 (API 130001), compared field by field with cupti_activity.h of 12.8
// and 13.0 and with the older structs kept there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tracefire::inject {

inline constexpr int kCuptiSuccess = 0;
inline constexpr int kCuptiMultipleSubscribers = 39;
/// Oldest and newest API versions whose records are known.
inline constexpr uint32_t kOldestCupti = 19;
inline constexpr uint32_t kForcedFlush = 1;

enum ActivityKind : uint32_t {
  kActivityMemcpy = 1,
  kActivityMemset = 2,
  kActivityKernel = 3,
  kActivityDriver = 4,
  kActivityRuntime = 5,
  kActivityDevice = 8,
  kActivityConcurrentKernel = 10,
  kActivityMemcpyPeer = 22,
  kActivityMemory = 49,
  kActivityGraphTrace = 51,
};

struct KernelRecord {
  uint32_t kind;
  uint32_t cache_and_registers[3];
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared;
  int32_t dynamic_shared;
  uint32_t local[2];
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
  void* reserved;
  uint64_t queued;
  uint64_t submitted;
  uint64_t launch_flags;
  uint64_t graph_node;
  uint32_t shared_executed;
  uint32_t graph;
};
static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, device) == 40);
static_assert(offsetof(KernelRecord, grid) == 52 && offsetof(KernelRecord, block) == 64);
static_assert(offsetof(KernelRecord, correlation) == 92 && offsetof(KernelRecord, name) == 104);
static_assert(offsetof(KernelRecord, graph_node) == 144 && offsetof(KernelRecord, graph) == 156);

struct MemcpyRecord {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;  ///< 1: asynchronous
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
};
static_assert(offsetof(MemcpyRecord, bytes) == 8 && offsetof(MemcpyRecord, correlation) == 44);

struct MemcpyPeerRecord {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t source_device;
  uint32_t source_context;
  uint32_t destination_device;
  uint32_t destination_context;
  uint32_t correlation;
};
static_assert(offsetof(MemcpyPeerRecord, correlation) == 60);

struct MemsetRecord {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
};
static_assert(offsetof(MemsetRecord, start) == 16 && offsetof(MemsetRecord, correlation) == 44);

struct ApiRecord {
  uint32_t kind;
  uint32_t number;  ///< callback id
  uint64_t start;
  uint64_t end;
  uint32_t process;
  uint32_t thread;
  uint32_t correlation;
  uint32_t result;
};
static_assert(sizeof(ApiRecord) == 40);

struct MemoryRecord {
  uint32_t kind;
  uint32_t operation;  ///< 1 allocates, 2 releases
  uint32_t memory_kind;
  uint32_t correlation;
  uint64_t address;
  uint64_t bytes;
  uint64_t timestamp;
  uint64_t program_counter;
  uint32_t process;
  uint32_t device;
};
static_assert(offsetof(MemoryRecord, bytes) == 24 && offsetof(MemoryRecord, device) == 52);

struct DeviceRecord {
  uint32_t kind;
  uint32_t flags;
  uint64_t bandwidth;  ///< kB/s
  uint64_t memory;     ///< bytes
  uint32_t constant_memory;
  uint32_t l2_bytes;
  uint32_t threads_per_warp;
  uint32_t core_khz;
  uint32_t copy_engines;
  uint32_t multiprocessors;
  uint32_t limits[14];
  uint32_t capability_major;
  uint32_t capability_minor;
  uint32_t id;
  uint32_t ecc;
  uint8_t uuid[16];
  const char* name;
};
static_assert(offsetof(DeviceRecord, core_khz) == 36 &&
              offsetof(DeviceRecord, multiprocessors) == 44);
static_assert(offsetof(DeviceRecord, capability_major) == 104 && offsetof(DeviceRecord, id) == 112);
static_assert(offsetof(DeviceRecord, uuid) == 120 && offsetof(DeviceRecord, name) == 136);

struct GraphTraceRecord {
  uint32_t kind;
  uint32_t correlation;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t graph;
  uint32_t context;
  uint32_t stream;
};
static_assert(sizeof(GraphTraceRecord) == 40);

}  // namespace tracefire::inject

/// Functions of CUPTI: name, arguments. All return 0 for success.
#define TRACEFIRE_CUPTI_FUNCTIONS(X)                                                      \
  X(cuptiGetVersion, (uint32_t * version))                                                \
  X(cuptiGetResultString, (int code, const char** words))                                 \
  X(cuptiGetTimestamp, (uint64_t * nanoseconds))                                          \
  X(cuptiSubscribe,                                                                       \
    (void** subscriber, void (*callback)(void*, int, uint32_t, const void*), void* data)) \
  X(cuptiUnsubscribe, (void* subscriber))                                                 \
  X(cuptiActivityRegisterCallbacks,                                                       \
    (void (*requested)(uint8_t**, size_t*, size_t*),                                      \
     void (*completed)(void*, uint32_t, uint8_t*, size_t, size_t)))                       \
  X(cuptiActivityEnable, (uint32_t kind))                                                 \
  X(cuptiActivityFlushAll, (uint32_t flag))                                               \
  X(cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, void** record))          \
  X(cuptiActivityGetNumDroppedRecords, (void* context, uint32_t stream, size_t* dropped))
/// These came with later versions and may be null.
#define TRACEFIRE_CUPTI_OPTIONAL(X)                                   \
  X(cuptiActivityEnableRuntimeApi, (uint32_t number, uint8_t enable)) \
  X(cuptiActivityEnableDriverApi, (uint32_t number, uint8_t enable))

namespace tracefire::inject {

struct CuptiApi {
#define TRACEFIRE_DECLARE(name, arguments) int(*name) arguments = nullptr;
  TRACEFIRE_CUPTI_FUNCTIONS(TRACEFIRE_DECLARE)
  TRACEFIRE_CUPTI_OPTIONAL(TRACEFIRE_DECLARE)
#undef TRACEFIRE_DECLARE
};

}  // namespace tracefire::inject
