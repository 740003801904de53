// SPDX-License-Identifier: Apache-2.0
//
// The files that the injected library writes, one pair a process, and what their bytes mean.
// docs/prove-records.md describes them for other readers. Everything is little-endian; `varint`
// is LEB128, `signed` a zigzag varint, `text` a varint length and that many bytes. All times are
// nanoseconds of CUPTI's clock unless said otherwise.
//
//   p<PID>-<HOST>-<N>.sum  the snapshot: totals since the start. Replaced whole, about once a
//   second.
//     8 bytes magic, u32 version, u32 length of the body, u32 CRC-32 of the body; then sections:
//     varint tag, varint length, payload. Readers skip tags and trailing bytes they do not know.
//   p<PID>-<HOST>-<N>.win  the windows: single events. Grows by whole chunks up to a limit.
//     a chunk: u32 magic, u32 length of the payload, u32 CRC-32 of all that follows, u32 window,
//     u64 base time; then events, whose start is a signed difference to the start of the event
//     before (at first the base time). Chunks with the older magic have the sum of the payload.
//   processes-<HOST>.txt  a line for each .sum and .ops.json file that a process of the host began.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/recorder.h"

namespace tracefire::inject {

inline constexpr char kSnapshotMagic[8] = {'T', 'F', 'P', 'R', 'S', 'U', 'M', '1'};
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kSnapshotHeaderBytes = 20;
inline constexpr uint32_t kChunkMagic = 0x32574654;     // "TFW2"
inline constexpr uint32_t kOldChunkMagic = 0x31574654;  // "TFW1"
inline constexpr size_t kChunkHeaderBytes = 24;
inline constexpr size_t kChunkSummed = 12;  ///< where the bytes begin whose sum is kept

/// Bounds that writer and reader share. A file beyond them is damaged.
inline constexpr size_t kMaxSnapshotBytes = size_t{8} << 20;
inline constexpr size_t kMaxChunkBytes = size_t{1} << 20;
inline constexpr int kMaxNames = 4096;      ///< kernels told apart; the rest share name 0
inline constexpr int kMaxNameBytes = 1024;  ///< longer names are cut
inline constexpr int kMaxDevices = 16;
inline constexpr int kMaxCopyKinds = 64;
inline constexpr int kMaxApis = 256;
inline constexpr int kMaxLanes = 1024;    ///< streams told apart; the rest share lane 0
inline constexpr int kMaxThreads = 1024;  ///< threads told apart; the rest share thread 0
inline constexpr int kBuckets = 1024;     ///< the time line has at most this many parts
inline constexpr int kMaxWindows = 256;

/// Sections of a snapshot, with their payloads in order.
enum class Section : uint8_t {
  kProcess = 1,  ///< pid, parent; text host, executable, command; rank + 1, ranks + 1, local + 1
  kTrace = 2,  ///< TraceState, CUPTI version, driver version; text library, detail; by node (1/0),
               ///< window limit (bytes)
  kClock = 3,  ///< start: CUPTI, real, monotonic; now: CUPTI, real, monotonic; clean end (1/0); CPU
               ///< time of the process in ns; peak resident bytes
  kCounts = 4,  ///< kernels, copies, memsets, calls, without times, dropped by CUPTI, unknown
                ///< kinds, buffers out, most buffers out, buffers refused, window events, events
                ///< cut, bytes of the window file
  kDevice = 5,  ///< id; text name; text UUID (16 bytes); capability major, minor; multiprocessors;
                ///< memory bytes; memory kB/s; core kHz
  kNames = 6,   ///< n, then n x (id; text; count; total ns, min, max; blocks; threads; launches as
                ///< graph nodes; device mask)
  kCopies = 7,  ///< n, then n x (copy kind, source kind, destination kind, count, bytes, ns, max
                ///< ns, asynchronous ones)
  kApis = 8,    ///< n, then n x (ApiClass, runtime (1) or driver (0), number, count, ns, max ns)
  kMemory = 9,  ///< n, then n x (device, memory kind, bytes now, peak bytes, allocations)
  kHostTime = 10,  ///< bucket ns, n, then n x (launches, ns in launches, ns in waits, ns in copies,
                   ///< CPU ns)
  kGpuTime = 11,   ///< device, bucket ns, n, then n x (busy ns, compute, communication, copies,
                   ///< kernels, bytes to the device, bytes to the host)
  kWindows = 12,   ///< n, then n x (index, first ns, last ns, events, cut (1/0))
};

enum class TraceState : uint8_t {
  kTracing = 1,
  kTaken = 2,     ///< another tool holds CUPTI
  kNoCupti = 3,   ///< libcupti was not found
  kOldCupti = 4,  ///< older than CUDA 12.0
  kFailed = 5,    ///< CUPTI refused; detail has its words
  kNoCuda = 6,    ///< the process never started CUDA: it is known by the executor's records alone
};

/// What a traced call of the CUDA API does.
enum class ApiClass : uint8_t {
  kLaunch = 1,
  kGraphLaunch = 2,
  kCopy = 3,
  kSet = 4,
  kWait = 5,      ///< the host waits for the device
  kAllocate = 6,  ///< cudaMalloc, cudaFree and the like, which may wait
};
inline constexpr int kApiClasses = 7;

/// Events of a window.
enum class Event : uint8_t {
  kKernel = 1,  ///< signed start, ns, name, lane, signed correlation difference, of a graph (1/0)
  kCopy = 2,    ///< signed start, ns, lane, signed correlation difference, copy kind, source kind,
                ///< destination kind, bytes, asynchronous (1/0)
  kSet = 3,     ///< signed start, ns, lane, signed correlation difference, bytes
  kCall = 4,    ///< signed start, ns, thread, signed correlation difference, ApiClass
  kLane = 5,    ///< lane, device, context, stream; comes before the lane's first event
  kThread = 6,  ///< thread, system thread id; comes before the thread's first event
};

using recorder::crc32;

}  // namespace tracefire::inject
