// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "backends/nvidia/search.h"
#include "core/base/status.h"

/// Functions of the CUDA driver: name, and the version of its interface that we are compiled for.
/// The driver hands out exactly that version, however new it is itself.
#define TRACEFIRE_DRIVER_FUNCTIONS(X)                  \
  X(cuInit, 2000)                                      \
  X(cuDeviceGet, 2000)                                 \
  X(cuDeviceGetCount, 2000)                            \
  X(cuDeviceGetName, 2000)                             \
  X(cuDeviceGetAttribute, 2000)                        \
  X(cuDeviceGetUuid, 11040)                            \
  X(cuDeviceGetPCIBusId, 4010)                         \
  X(cuDeviceTotalMem, 3020)                            \
  X(cuDeviceCanAccessPeer, 4000)                       \
  X(cuDevicePrimaryCtxRetain, 7000)                    \
  X(cuDevicePrimaryCtxRelease, 11000)                  \
  X(cuDevicePrimaryCtxReset, 11000)                    \
  X(cuDevicePrimaryCtxGetState, 7000)                  \
  X(cuCtxSetCurrent, 4000)                             \
  X(cuCtxGetCurrent, 4000)                             \
  X(cuCtxSynchronize, 2000)                            \
  X(cuCtxEnablePeerAccess, 4000)                       \
  X(cuGetErrorName, 6000)                              \
  X(cuGetErrorString, 6000)                            \
  X(cuMemAlloc, 3020)                                  \
  X(cuMemFree, 3020)                                   \
  X(cuMemGetInfo, 3020)                                \
  X(cuMemHostAlloc, 2020)                              \
  X(cuMemFreeHost, 2000)                               \
  X(cuMemHostRegister, 6050)                           \
  X(cuMemHostUnregister, 4000)                         \
  X(cuPointerGetAttribute, 4000)                       \
  X(cuMemcpyHtoDAsync, 3020)                           \
  X(cuMemcpyDtoHAsync, 3020)                           \
  X(cuMemcpyDtoDAsync, 3020)                           \
  X(cuMemcpyPeerAsync, 4000)                           \
  X(cuMemsetD8Async, 3020)                             \
  X(cuMemsetD32Async, 3020)                            \
  X(cuStreamCreateWithPriority, 5050)                  \
  X(cuStreamDestroy, 4000)                             \
  X(cuStreamSynchronize, 2000)                         \
  X(cuStreamQuery, 2000)                               \
  X(cuStreamWaitEvent, 3020)                           \
  X(cuStreamBeginCapture, 10010)                       \
  X(cuStreamEndCapture, 10000)                         \
  X(cuStreamIsCapturing, 10000)                        \
  X(cuThreadExchangeStreamCaptureMode, 10010)          \
  X(cuLaunchHostFunc, 10000)                           \
  X(cuEventCreate, 2000)                               \
  X(cuEventDestroy, 4000)                              \
  X(cuEventRecord, 2000)                               \
  X(cuEventQuery, 2000)                                \
  X(cuEventSynchronize, 2000)                          \
  X(cuEventElapsedTime, 2000)                          \
  X(cuGraphInstantiateWithFlags, 11040)                \
  X(cuGraphUpload, 11010)                              \
  X(cuGraphLaunch, 10000)                              \
  X(cuGraphGetNodes, 10000)                            \
  X(cuGraphDestroy, 10000)                             \
  X(cuGraphExecDestroy, 10000)                         \
  X(cuModuleLoadDataEx, 2010)                          \
  X(cuModuleUnload, 2000)                              \
  X(cuModuleGetFunction, 2000)                         \
  X(cuModuleGetGlobal, 3020)                           \
  X(cuFuncGetAttribute, 2020)                          \
  X(cuFuncSetAttribute, 9000)                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
  X(cuLaunchKernelEx, 11060)

namespace tracefire::nvidia {

/// The driver's functions. Complete, or not made at all.
struct DriverApi {
#define TRACEFIRE_DECLARE(name, version) PFN_##name##_v##version name = nullptr;
  TRACEFIRE_DRIVER_FUNCTIONS(TRACEFIRE_DECLARE)
#undef TRACEFIRE_DECLARE
};

/// Oldest driver interface that is supported, as cuDriverGetVersion tells it (driver 525).
inline constexpr int kOldestDriver = 12000;

/// Takes the functions from an open libcuda.
/// Errors: kDriverTooOld, kCudaCall where one is missing from a driver that should have it.
Result<DriverApi> load_driver_api(const OpenLibrary& libcuda);

}  // namespace tracefire::nvidia
