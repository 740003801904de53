// SPDX-License-Identifier: Apache-2.0
// libcuda of the emulator.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator.h"

namespace {

std::recursive_mutex mutex;
TfEmuCounts counts{};
CUresult sticky = CUDA_SUCCESS;
std::map<uintptr_t, size_t> device_memory;
int context_of_process;  // its address stands for the primary context
thread_local CUcontext current_context = nullptr;

using Op = std::function<CUresult()>;
struct Stream;
struct Graph {
  std::vector<Op> ops;
  std::vector<Stream*> streams;  // that record into it
};
struct Stream {
  Graph* capture = nullptr;
  bool broken = false;  // something that cannot be captured was called
};
struct Event {
  Graph* capture = nullptr;  // recorded on a stream that records into this graph
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
};
struct Module {
  void* handle = nullptr;
};
struct Function {
  int (*run)(const unsigned*, const unsigned*, unsigned, void**);
  std::vector<int> sizes;
  int dynamic_shared = 48 * 1024;
};
std::map<std::pair<void*, std::string>, Function*> functions;

long long setting(const char* name, long long fallback) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : std::atoll(value);
}

/// Code that the test asked this function to return, or the sticky error.
CUresult planned(const char* function) {
  if (sticky != CUDA_SUCCESS) return sticky;
  const char* plan = std::getenv("TF_EMU_FAIL");
  if (plan == nullptr) return CUDA_SUCCESS;
  const char* equals = std::strchr(plan, '=');
  if (equals == nullptr || std::string(plan, equals) != function) return CUDA_SUCCESS;
  return static_cast<CUresult>(std::atoi(equals + 1));
}
#define TF_PLANNED(name)                                   \
  const std::lock_guard<std::recursive_mutex> lock(mutex); \
  if (const CUresult code = planned(#name); code != CUDA_SUCCESS) return code

bool inside(CUdeviceptr pointer, size_t bytes) {
  auto it = device_memory.upper_bound(static_cast<uintptr_t>(pointer));
  if (it == device_memory.begin()) return false;
  --it;
  return pointer + bytes <= it->first + it->second;
}

CUresult enqueue(CUstream handle, Op op) {
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (stream != nullptr && stream->capture != nullptr) {
    stream->capture->ops.push_back(std::move(op));
    return CUDA_SUCCESS;
  }
  return op();
}

void* as_host(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

// --- devices
/// A process that was forked after cuInit cannot use CUDA, as with the driver.
bool forked_since_start() {
  static std::atomic<pid_t> started{0};
  pid_t by = 0;
  return !started.compare_exchange_strong(by, getpid()) && by != getpid();
}

CUresult emu_cuInit(unsigned) {
  if (forked_since_start()) return CUDA_ERROR_NOT_INITIALIZED;
  return static_cast<CUresult>(setting("TF_EMU_INIT", 0));
}
CUresult emu_cuDeviceGetCount(int* count) {
  *count = static_cast<int>(setting("TF_EMU_GPUS", 1));
  return CUDA_SUCCESS;
}
CUresult emu_cuDeviceGet(CUdevice* device, int index) {
  if (forked_since_start()) return CUDA_ERROR_NOT_INITIALIZED;
  *device = index;
  return index < setting("TF_EMU_GPUS", 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult emu_cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<size_t>(length), "Emulated GPU");
  return CUDA_SUCCESS;
}
CUresult emu_cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const int capability = static_cast<int>(setting("TF_EMU_CAPABILITY", 90));
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = capability / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = capability % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 4;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = 1980000;
      break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = 60 << 20;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 227 * 1024;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}
CUresult emu_cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(i + device);
  return CUDA_SUCCESS;
}
CUresult emu_cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device + 1);
  return CUDA_SUCCESS;
}
CUresult emu_cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = static_cast<size_t>(setting("TF_EMU_MEMORY", 1LL << 30));
  return CUDA_SUCCESS;
}
CUresult emu_cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  *can = 1;
  return CUDA_SUCCESS;
}
CUresult emu_cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  TF_PLANNED(cuDevicePrimaryCtxRetain);
  *context = reinterpret_cast<CUcontext>(&context_of_process);
  return CUDA_SUCCESS;
}
CUresult emu_cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult emu_cuDevicePrimaryCtxReset(CUdevice) { return CUDA_SUCCESS; }
CUresult emu_cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 0;
  return CUDA_SUCCESS;
}
CUresult emu_cuCtxSetCurrent(CUcontext context) {
  current_context = context;
  return CUDA_SUCCESS;
}
CUresult emu_cuCtxGetCurrent(CUcontext* context) {
  *context = current_context;
  return CUDA_SUCCESS;
}
CUresult emu_cuCtxSynchronize() {
  TF_PLANNED(cuCtxSynchronize);
  return CUDA_SUCCESS;
}
CUresult emu_cuCtxEnablePeerAccess(CUcontext, unsigned) { return CUDA_SUCCESS; }

// --- errors
const char* error_name(CUresult code) {
  switch (code) {
    case CUDA_SUCCESS:
      return "CUDA_SUCCESS";
    case CUDA_ERROR_INVALID_VALUE:
      return "CUDA_ERROR_INVALID_VALUE";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case CUDA_ERROR_NO_DEVICE:
      return "CUDA_ERROR_NO_DEVICE";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case CUDA_ERROR_UNKNOWN:
      return "CUDA_ERROR_UNKNOWN";
    default:
      return "CUDA_ERROR_EMULATED";
  }
}
CUresult emu_cuGetErrorName(CUresult code, const char** name) {
  *name = error_name(code);
  return CUDA_SUCCESS;
}
CUresult emu_cuGetErrorString(CUresult code, const char** text) {
  *text = error_name(code);
  return CUDA_SUCCESS;
}

// --- memory
CUresult emu_cuMemAlloc(CUdeviceptr* pointer, size_t bytes) {
  TF_PLANNED(cuMemAlloc);
  if (current_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (counts.live_bytes + static_cast<int64_t>(bytes) > setting("TF_EMU_MEMORY", 1LL << 30)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* block = nullptr;
  if (posix_memalign(&block, 512, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(block, 0xcd, bytes);  // nobody may rely on zeros
  device_memory[reinterpret_cast<uintptr_t>(block)] = bytes;
  ++counts.allocations;
  counts.live_bytes += static_cast<int64_t>(bytes);
  *pointer = reinterpret_cast<CUdeviceptr>(block);
  return CUDA_SUCCESS;
}
CUresult emu_cuMemFree(CUdeviceptr pointer) {
  TF_PLANNED(cuMemFree);
  const auto it = device_memory.find(static_cast<uintptr_t>(pointer));
  if (it == device_memory.end()) return CUDA_ERROR_INVALID_VALUE;
  ++counts.frees;
  counts.live_bytes -= static_cast<int64_t>(it->second);
  std::free(as_host(pointer));
  device_memory.erase(it);
  return CUDA_SUCCESS;
}
CUresult emu_cuMemGetInfo(size_t* free, size_t* total) {
  *total = static_cast<size_t>(setting("TF_EMU_MEMORY", 1LL << 30));
  *free = *total - static_cast<size_t>(counts.live_bytes);
  return CUDA_SUCCESS;
}
CUresult emu_cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  TF_PLANNED(cuMemHostAlloc);
  ++counts.host_allocations;
  return posix_memalign(pointer, 4096, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult emu_cuMemFreeHost(void* pointer) {
  std::free(pointer);
  return CUDA_SUCCESS;
}
CUresult emu_cuMemHostRegister(void*, size_t, unsigned) { return CUDA_SUCCESS; }
CUresult emu_cuMemHostUnregister(void*) { return CUDA_SUCCESS; }
CUresult emu_cuPointerGetAttribute(void* data, CUpointer_attribute, CUdeviceptr pointer) {
  if (!inside(pointer, 1)) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<unsigned*>(data) = CU_MEMORYTYPE_DEVICE;
  return CUDA_SUCCESS;
}
CUresult emu_cuMemcpyHtoDAsync(CUdeviceptr target, const void* source, size_t bytes,
                               CUstream stream) {
  TF_PLANNED(cuMemcpyHtoDAsync);
  if (!inside(target, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, [=] {
    std::memcpy(as_host(target), source, bytes);
    return CUDA_SUCCESS;
  });
}
CUresult emu_cuMemcpyDtoHAsync(void* target, CUdeviceptr source, size_t bytes, CUstream stream) {
  TF_PLANNED(cuMemcpyDtoHAsync);
  if (!inside(source, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, [=] {
    std::memcpy(target, as_host(source), bytes);
    return CUDA_SUCCESS;
  });
}
CUresult emu_cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes,
                               CUstream stream) {
  TF_PLANNED(cuMemcpyDtoDAsync);
  if (!inside(target, bytes) || !inside(source, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, [=] {
    std::memmove(as_host(target), as_host(source), bytes);
    return CUDA_SUCCESS;
  });
}
CUresult emu_cuMemcpyPeerAsync(CUdeviceptr target, CUcontext, CUdeviceptr source, CUcontext,
                               size_t bytes, CUstream stream) {
  return emu_cuMemcpyDtoDAsync(target, source, bytes, stream);
}
CUresult emu_cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes,
                             CUstream stream) {
  TF_PLANNED(cuMemsetD8Async);
  if (!inside(target, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, [=] {
    std::memset(as_host(target), value, bytes);
    return CUDA_SUCCESS;
  });
}
CUresult emu_cuMemsetD32Async(CUdeviceptr target, unsigned value, size_t words, CUstream stream) {
  TF_PLANNED(cuMemsetD32Async);
  if (!inside(target, words * 4)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, [=] {
    for (size_t i = 0; i < words; ++i) static_cast<unsigned*>(as_host(target))[i] = value;
    return CUDA_SUCCESS;
  });
}

// --- streams, events, graphs
CUresult emu_cuStreamCreateWithPriority(CUstream* stream, unsigned, int) {
  TF_PLANNED(cuStreamCreateWithPriority);
  *stream = reinterpret_cast<CUstream>(new Stream());
  return CUDA_SUCCESS;
}
CUresult emu_cuStreamDestroy(CUstream stream) {
  delete reinterpret_cast<Stream*>(stream);
  return CUDA_SUCCESS;
}
CUresult emu_cuStreamSynchronize(CUstream handle) {
  TF_PLANNED(cuStreamSynchronize);
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (stream != nullptr && stream->capture != nullptr) {
    stream->broken = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}
CUresult emu_cuStreamQuery(CUstream) {
  TF_PLANNED(cuStreamQuery);
  return CUDA_SUCCESS;
}
CUresult emu_cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  TF_PLANNED(cuStreamWaitEvent);
  auto* stream = reinterpret_cast<Stream*>(handle);
  Graph* graph = reinterpret_cast<Event*>(event)->capture;
  if (graph != nullptr && stream->capture == nullptr) {
    stream->capture = graph;  // waiting for recorded work makes the stream record too
    graph->streams.push_back(stream);
  }
  return graph == stream->capture ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}
CUresult emu_cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode) {
  TF_PLANNED(cuStreamBeginCapture);
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (stream == nullptr || stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = new Graph();
  stream->capture->streams.push_back(stream);
  stream->broken = false;
  return CUDA_SUCCESS;
}
CUresult emu_cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  auto* stream = reinterpret_cast<Stream*>(handle);
  *graph = reinterpret_cast<CUgraph>(stream->capture);
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  for (Stream* joined : reinterpret_cast<Graph*>(*graph)->streams) joined->capture = nullptr;
  if (stream->broken) {
    delete reinterpret_cast<Graph*>(*graph);
    *graph = nullptr;
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  return planned("cuStreamEndCapture");
}
CUresult emu_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  auto* stream = reinterpret_cast<Stream*>(handle);
  *status =
      stream->capture != nullptr ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult emu_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) { return CUDA_SUCCESS; }
CUresult emu_cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return enqueue(stream, [=] {
    function(data);
    return CUDA_SUCCESS;
  });
}
CUresult emu_cuEventCreate(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(new Event());
  return CUDA_SUCCESS;
}
CUresult emu_cuEventDestroy(CUevent event) {
  delete reinterpret_cast<Event*>(event);
  return CUDA_SUCCESS;
}
CUresult emu_cuEventRecord(CUevent handle, CUstream stream) {
  TF_PLANNED(cuEventRecord);
  auto* event = reinterpret_cast<Event*>(handle);
  event->time = std::chrono::steady_clock::now();
  event->recorded = true;
  event->capture = stream == nullptr ? nullptr : reinterpret_cast<Stream*>(stream)->capture;
  return CUDA_SUCCESS;
}
CUresult emu_cuEventQuery(CUevent) {
  TF_PLANNED(cuEventQuery);
  return CUDA_SUCCESS;
}
CUresult emu_cuEventSynchronize(CUevent) {
  TF_PLANNED(cuEventSynchronize);
  return CUDA_SUCCESS;
}
CUresult emu_cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  const auto span = reinterpret_cast<Event*>(end)->time - reinterpret_cast<Event*>(start)->time;
  *milliseconds = std::chrono::duration<float, std::milli>(span).count();
  return CUDA_SUCCESS;
}
CUresult emu_cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  TF_PLANNED(cuGraphInstantiateWithFlags);
  *exec = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return CUDA_SUCCESS;
}
CUresult emu_cuGraphUpload(CUgraphExec, CUstream) { return CUDA_SUCCESS; }
CUresult emu_cuGraphLaunch(CUgraphExec exec, CUstream) {
  TF_PLANNED(cuGraphLaunch);
  ++counts.graph_launches;
  for (const Op& op : reinterpret_cast<Graph*>(exec)->ops) {
    if (const CUresult code = op(); code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}
CUresult emu_cuGraphGetNodes(CUgraph graph, CUgraphNode*, size_t* count) {
  *count = reinterpret_cast<Graph*>(graph)->ops.size();
  return CUDA_SUCCESS;
}
CUresult emu_cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Graph*>(graph);
  return CUDA_SUCCESS;
}
CUresult emu_cuGraphExecDestroy(CUgraphExec exec) {
  delete reinterpret_cast<Graph*>(exec);
  return CUDA_SUCCESS;
}

// --- modules
/// The ready kernels as compiled for the host; null with a message where they were not built.
void* ready_kernels() {
  const char* const given = std::getenv("TF_EMU_READY_KERNELS");
  const char* const path = given != nullptr ? given : TF_EMU_READY_KERNELS;
  void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // each time: tests change the variable
  if (opened == nullptr) std::fprintf(stderr, "emulator: %s\n", dlerror());
  return opened;
}

/// An image is "TFEMU <bytes>\n" and a shared library, as the emulator's NVRTC makes it. A real
/// cubin or PTX text can only be one of the ready kernels' images: their host build runs instead.
CUresult emu_cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*,
                                void**) {
  TF_PLANNED(cuModuleLoadDataEx);
  if (current_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const char* text = static_cast<const char*>(image);
  auto* made = new Module();
  if (std::strncmp(text, "TFEMU ", 6) == 0) {
    const size_t bytes = static_cast<size_t>(std::atoll(text + 6));
    const char* begin = std::strchr(text, '\n') + 1;
    char path[] = "/tmp/tf_emu_XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || write(fd, begin, bytes) != static_cast<ssize_t>(bytes)) {
      delete made;
      return CUDA_ERROR_INVALID_IMAGE;
    }
    close(fd);
    made->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (made->handle == nullptr) std::fprintf(stderr, "emulator: %s\n", dlerror());
    unlink(path);
    if (made->handle == nullptr) {
      delete made;
      return CUDA_ERROR_INVALID_IMAGE;
    }
  } else if (std::strstr(text, ".version") == nullptr && std::strncmp(text,
                                                                      "\x7f"
                                                                      "ELF",
                                                                      4) != 0) {
    delete made;
    return CUDA_ERROR_INVALID_IMAGE;
  } else {
    made->handle = ready_kernels();
  }
  *module = reinterpret_cast<CUmodule>(made);
  return CUDA_SUCCESS;
}
CUresult emu_cuModuleUnload(CUmodule module) {
  delete reinterpret_cast<Module*>(module);
  return CUDA_SUCCESS;
}
CUresult emu_cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  TF_PLANNED(cuModuleGetFunction);
  auto* module = reinterpret_cast<Module*>(handle);
  auto made = std::make_unique<Function>();
  if (module->handle == nullptr) return CUDA_ERROR_NOT_FOUND;
  const std::string run = std::string("tf_emu_run_") + name;
  const std::string sizes = std::string("tf_emu_sizes_") + name;
  made->run = reinterpret_cast<decltype(made->run)>(dlsym(module->handle, run.c_str()));
  const auto get_sizes = reinterpret_cast<void (*)(int*)>(dlsym(module->handle, sizes.c_str()));
  if (made->run == nullptr || get_sizes == nullptr) return CUDA_ERROR_NOT_FOUND;
  int list[256];
  get_sizes(list);
  for (int i = 0; list[i] != 0; ++i) made->sizes.push_back(list[i]);
  *function = reinterpret_cast<CUfunction>(made.release());
  return CUDA_SUCCESS;
}
CUresult emu_cuModuleGetGlobal(CUdeviceptr*, size_t*, CUmodule, const char*) {
  return CUDA_ERROR_NOT_FOUND;
}
CUresult emu_cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
  return CUDA_SUCCESS;
}
CUresult emu_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value > 227 * 1024) return CUDA_ERROR_INVALID_VALUE;
    reinterpret_cast<Function*>(function)->dynamic_shared = value;
  }
  return CUDA_SUCCESS;
}
CUresult emu_cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int threads,
                                                         size_t) {
  *blocks = 2048 / threads;
  return CUDA_SUCCESS;
}
CUresult emu_cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction handle, void** params,
                              void**) {
  TF_PLANNED(cuLaunchKernelEx);
  if (current_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  auto* function = reinterpret_cast<Function*>(handle);
  const CUlaunchConfig c = *config;
  const uint64_t threads = static_cast<uint64_t>(c.blockDimX) * c.blockDimY * c.blockDimZ;
  if (threads == 0 || threads > 1024 || c.gridDimX == 0 || c.gridDimY == 0 || c.gridDimZ == 0 ||
      c.gridDimY > 65535 || c.gridDimZ > 65535 || c.gridDimX > 2147483647u ||
      c.sharedMemBytes > static_cast<unsigned>(function->dynamic_shared)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool pdl = false;
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    pdl = pdl || (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                  c.attrs[i].value.programmaticStreamSerializationAllowed != 0);
  }
  // Arguments are copied at the call, as the driver does, also while capturing.
  std::vector<std::vector<char>> copies;
  for (size_t i = 0; i < function->sizes.size(); ++i) {
    const char* from = static_cast<const char*>(params[i]);
    copies.emplace_back(from, from + function->sizes[i]);
  }
  return enqueue(c.hStream, [=]() mutable {
    ++counts.launches;
    if (pdl) ++counts.pdl_launches;
    std::vector<void*> pointers;
    for (auto& copy : copies) pointers.push_back(copy.data());
    const unsigned grid[] = {c.gridDimX, c.gridDimY, c.gridDimZ};
    const unsigned block[] = {c.blockDimX, c.blockDimY, c.blockDimZ};
    if (function->run(grid, block, c.sharedMemBytes, pointers.data()) != 0)
      sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    return CUDA_SUCCESS;  // as on a GPU, the failure shows at the next synchronisation
  });
}

struct Entry {
  const char* name;
  void* address;
};
#define E(name) \
  { #name, reinterpret_cast < void*>(&emu_##name) }
// Names without the header's version suffixes.
#undef cuDeviceGetUuid
#undef cuDeviceTotalMem
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemGetInfo
#undef cuMemHostRegister
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyDtoDAsync
#undef cuStreamDestroy
#undef cuStreamBeginCapture
#undef cuEventDestroy
#undef cuEventElapsedTime
#undef cuModuleGetGlobal
const Entry kEntries[] = {
    E(cuInit),
    E(cuDeviceGet),
    E(cuDeviceGetCount),
    E(cuDeviceGetName),
    E(cuDeviceGetAttribute),
    E(cuDeviceGetUuid),
    E(cuDeviceGetPCIBusId),
    E(cuDeviceTotalMem),
    E(cuDeviceCanAccessPeer),
    E(cuDevicePrimaryCtxRetain),
    E(cuDevicePrimaryCtxRelease),
    E(cuDevicePrimaryCtxReset),
    E(cuDevicePrimaryCtxGetState),
    E(cuCtxSetCurrent),
    E(cuCtxGetCurrent),
    E(cuCtxSynchronize),
    E(cuCtxEnablePeerAccess),
    E(cuGetErrorName),
    E(cuGetErrorString),
    E(cuMemAlloc),
    E(cuMemFree),
    E(cuMemGetInfo),
    E(cuMemHostAlloc),
    E(cuMemFreeHost),
    E(cuMemHostRegister),
    E(cuMemHostUnregister),
    E(cuPointerGetAttribute),
    E(cuMemcpyHtoDAsync),
    E(cuMemcpyDtoHAsync),
    E(cuMemcpyDtoDAsync),
    E(cuMemcpyPeerAsync),
    E(cuMemsetD8Async),
    E(cuMemsetD32Async),
    E(cuStreamCreateWithPriority),
    E(cuStreamDestroy),
    E(cuStreamSynchronize),
    E(cuStreamQuery),
    E(cuStreamWaitEvent),
    E(cuStreamBeginCapture),
    E(cuStreamEndCapture),
    E(cuStreamIsCapturing),
    E(cuThreadExchangeStreamCaptureMode),
    E(cuLaunchHostFunc),
    E(cuEventCreate),
    E(cuEventDestroy),
    E(cuEventRecord),
    E(cuEventQuery),
    E(cuEventSynchronize),
    E(cuEventElapsedTime),
    E(cuGraphInstantiateWithFlags),
    E(cuGraphUpload),
    E(cuGraphLaunch),
    E(cuGraphGetNodes),
    E(cuGraphDestroy),
    E(cuGraphExecDestroy),
    E(cuModuleLoadDataEx),
    E(cuModuleUnload),
    E(cuModuleGetFunction),
    E(cuModuleGetGlobal),
    E(cuFuncGetAttribute),
    E(cuFuncSetAttribute),
    E(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    E(cuLaunchKernelEx),
};
#undef E

}  // namespace

TfEmuCounts* tf_emu_counts() { return &counts; }

extern "C" {
CUresult tf_emu_enqueue(CUstream stream, CUresult (*function)(void*), void (*drop)(void*),
                        void* data) {
  // For the other libraries of the emulator: runs now, or at each replay of the graph.
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const std::shared_ptr<void> owner(data, drop);
  return enqueue(stream, [=] { return function(owner.get()); });
}
CUresult cuDriverGetVersion(int* version) {
  *version = static_cast<int>(setting("TF_EMU_CUDA", 13000));
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult code, const char** name) { return emu_cuGetErrorName(code, name); }
#undef cuGetProcAddress
CUresult cuGetProcAddress_v2(const char* name, void** address, int, cuuint64_t,
                             CUdriverProcAddressQueryResult*) {
  const char* hidden = std::getenv("TF_EMU_NO_SYMBOL");
  *address = nullptr;
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.name, name) == 0 &&
        (hidden == nullptr || std::strcmp(hidden, name) != 0)) {
      *address = entry.address;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}
}
