// SPDX-License-Identifier: Apache-2.0
// Compiled against the header of a real CUPTI: the beginnings of records that we declare are its.
// test_layout.py does so for every header that it finds.
#include <cupti.h>

#include "tools/inject/cupti_api.h"

namespace ours = tracefire::inject;

#define SAME(Ours, our_field, Theirs, their_field)                                    \
  static_assert(offsetof(ours::Ours, our_field) == offsetof(Theirs, their_field) &&   \
                    sizeof(ours::Ours::our_field) == sizeof(Theirs::their_field),     \
                #Ours "." #our_field)

#if CUPTI_API_VERSION >= 130000
using Kernel = CUpti_ActivityKernel10;
#else
using Kernel = CUpti_ActivityKernel9;
#endif
SAME(KernelRecord, kind, Kernel, kind);
SAME(KernelRecord, start, Kernel, start);
SAME(KernelRecord, end, Kernel, end);
SAME(KernelRecord, device, Kernel, deviceId);
SAME(KernelRecord, context, Kernel, contextId);
SAME(KernelRecord, stream, Kernel, streamId);
static_assert(offsetof(ours::KernelRecord, grid) == offsetof(Kernel, gridX));
static_assert(offsetof(ours::KernelRecord, block) == offsetof(Kernel, blockX));
SAME(KernelRecord, correlation, Kernel, correlationId);
SAME(KernelRecord, name, Kernel, name);
SAME(KernelRecord, graph_node, Kernel, graphNodeId);
SAME(KernelRecord, graph, Kernel, graphId);

using Copy = CUpti_ActivityMemcpy6;
SAME(MemcpyRecord, copy_kind, Copy, copyKind);
SAME(MemcpyRecord, source_kind, Copy, srcKind);
SAME(MemcpyRecord, destination_kind, Copy, dstKind);
SAME(MemcpyRecord, flags, Copy, flags);
SAME(MemcpyRecord, bytes, Copy, bytes);
SAME(MemcpyRecord, start, Copy, start);
SAME(MemcpyRecord, end, Copy, end);
SAME(MemcpyRecord, device, Copy, deviceId);
SAME(MemcpyRecord, stream, Copy, streamId);
SAME(MemcpyRecord, correlation, Copy, correlationId);

using Peer = CUpti_ActivityMemcpyPtoP4;
SAME(MemcpyPeerRecord, bytes, Peer, bytes);
SAME(MemcpyPeerRecord, start, Peer, start);
SAME(MemcpyPeerRecord, device, Peer, deviceId);
SAME(MemcpyPeerRecord, source_device, Peer, srcDeviceId);
SAME(MemcpyPeerRecord, destination_device, Peer, dstDeviceId);
SAME(MemcpyPeerRecord, correlation, Peer, correlationId);

using Set = CUpti_ActivityMemset4;
SAME(MemsetRecord, bytes, Set, bytes);
SAME(MemsetRecord, start, Set, start);
SAME(MemsetRecord, device, Set, deviceId);
SAME(MemsetRecord, stream, Set, streamId);
SAME(MemsetRecord, correlation, Set, correlationId);

SAME(ApiRecord, number, CUpti_ActivityAPI, cbid);
SAME(ApiRecord, start, CUpti_ActivityAPI, start);
SAME(ApiRecord, end, CUpti_ActivityAPI, end);
SAME(ApiRecord, thread, CUpti_ActivityAPI, threadId);
SAME(ApiRecord, correlation, CUpti_ActivityAPI, correlationId);

using Memory = CUpti_ActivityMemory4;
SAME(MemoryRecord, operation, Memory, memoryOperationType);
SAME(MemoryRecord, memory_kind, Memory, memoryKind);
SAME(MemoryRecord, bytes, Memory, bytes);
SAME(MemoryRecord, timestamp, Memory, timestamp);
SAME(MemoryRecord, device, Memory, deviceId);

using Device = CUpti_ActivityDevice5;
SAME(DeviceRecord, bandwidth, Device, globalMemoryBandwidth);
SAME(DeviceRecord, memory, Device, globalMemorySize);
SAME(DeviceRecord, core_khz, Device, coreClockRate);
SAME(DeviceRecord, multiprocessors, Device, numMultiprocessors);
SAME(DeviceRecord, capability_major, Device, computeCapabilityMajor);
SAME(DeviceRecord, capability_minor, Device, computeCapabilityMinor);
SAME(DeviceRecord, id, Device, id);
static_assert(offsetof(ours::DeviceRecord, uuid) == offsetof(Device, uuid));
SAME(DeviceRecord, name, Device, name);

using Graph = CUpti_ActivityGraphTrace2;
SAME(GraphTraceRecord, correlation, Graph, correlationId);
SAME(GraphTraceRecord, start, Graph, start);
SAME(GraphTraceRecord, end, Graph, end);
SAME(GraphTraceRecord, device, Graph, deviceId);
SAME(GraphTraceRecord, graph, Graph, graphId);
SAME(GraphTraceRecord, stream, Graph, streamId);

static_assert(ours::kActivityMemcpy == CUPTI_ACTIVITY_KIND_MEMCPY);
static_assert(ours::kActivityMemset == CUPTI_ACTIVITY_KIND_MEMSET);
static_assert(ours::kActivityDriver == CUPTI_ACTIVITY_KIND_DRIVER);
static_assert(ours::kActivityRuntime == CUPTI_ACTIVITY_KIND_RUNTIME);
static_assert(ours::kActivityDevice == CUPTI_ACTIVITY_KIND_DEVICE);
static_assert(ours::kActivityConcurrentKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(ours::kActivityMemcpyPeer == CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert(ours::kActivityMemory == CUPTI_ACTIVITY_KIND_MEMORY2);
static_assert(ours::kActivityGraphTrace == CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
