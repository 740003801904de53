// SPDX-License-Identifier: Apache-2.0
// A program that seems to use a GPU: gpu_program [SCENE [COUNT]]. It loads what
// CUDA_INJECTION64_PATH names, as the driver does, and reports COUNT steps of a scene's work to the
// stand-in for CUPTI.
//   training   one copy to the device, then kernels back to back
//   tiny       short kernels with long gaps, one launch each
//   burst      launches as fast as it can, and prints the nanoseconds that each took
//   endless    as tiny, until it is killed
//   fork       training, then a child that works on without exec, then more training
//   children   starts two copies of itself with the scene training
//   exit7, segv, kill9, nothing
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../../../src/tools/inject/cupti_api.h"

using namespace tracefire::inject;

extern "C" int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

namespace {

void (*record)(const void*, size_t) = nullptr;
uint32_t correlation = 0;

uint64_t now() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

void initialise() {
  if (const char* path = std::getenv("CUDA_INJECTION64_PATH")) {
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
      if (auto start = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) start();
    } else {
      std::fprintf(stderr, "%s\n", dlerror());
    }
  }
  const char* list = std::getenv("TRACEFIRE_PROVE_CUPTI");
  if (list == nullptr || std::strncmp(list, "13=", 3) != 0) return;
  const std::string path(list + 3, std::strcspn(list + 3, ":"));
  if (void* cupti = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    record = reinterpret_cast<void (*)(const void*, size_t)>(dlsym(cupti, "tf_fake_record"));
  }
}

template <class Record>
void report(const Record& r) {
  if (record != nullptr) record(&r, sizeof(r));
}

void call(uint32_t number, uint64_t start, uint64_t end) {
  ApiRecord r{};
  r.kind = kActivityRuntime;
  r.number = number;
  r.start = start;
  r.end = end;
  r.thread = static_cast<uint32_t>(getpid());
  r.correlation = correlation;
  report(r);
}

void kernel(const char* name, uint64_t start, uint64_t end) {
  KernelRecord r{};
  r.kind = kActivityConcurrentKernel;
  r.start = start;
  r.end = end;
  r.context = 1;
  r.stream = 7;
  for (int i = 0; i < 3; ++i) r.grid[i] = r.block[i] = i == 0 ? 128 : 1;
  r.correlation = correlation;
  r.name = name;
  report(r);
}

void copy_to_device(uint64_t bytes, uint64_t start, uint64_t end) {
  MemcpyRecord r{};
  r.kind = kActivityMemcpy;
  r.copy_kind = 1;
  r.source_kind = 1;
  r.destination_kind = 3;
  r.bytes = bytes;
  r.start = start;
  r.end = end;
  r.context = 1;
  r.stream = 7;
  r.correlation = correlation;
  report(r);
}

void device() {
  DeviceRecord r{};
  r.kind = kActivityDevice;
  r.bandwidth = 4915200000;
  r.memory = uint64_t{141} << 30;
  r.core_khz = 1980000;
  r.multiprocessors = 132;
  r.capability_major = 9;
  for (int i = 0; i < 16; ++i) r.uuid[i] = static_cast<uint8_t>(i);
  r.name = "Emulated GPU";
  report(r);
  MemoryRecord m{};
  m.kind = kActivityMemory;
  m.operation = 1;
  m.memory_kind = 3;
  m.bytes = uint64_t{2} << 30;
  m.timestamp = now();
  report(m);
}

void pause(long microseconds) {
  const timespec t{0, microseconds * 1000};
  nanosleep(&t, nullptr);
}

// 10 ms a step, of which the device is busy for 9.5: half a product, half element-wise work.
void training(int steps) {
  for (int i = 0; i < steps; ++i) {
    const uint64_t at = now();
    ++correlation;
    call(41, at, at + 20000);
    copy_to_device(1 << 20, at + 30000, at + 130000);
    ++correlation;
    call(211, at + 40000, at + 50000);
    kernel("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas", at + 140000,
           at + 4800000);
    ++correlation;
    call(211, at + 60000, at + 70000);
    kernel("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE", at + 4810000,
           at + 9500000);
    pause(10000);
  }
}

void tiny(int steps) {
  for (int i = 0; i < steps; ++i) {
    const uint64_t at = now();
    ++correlation;
    call(211, at, at + 4000);
    kernel("tiny_kernel", at + 6000, at + 8000);
    pause(20);
  }
}

/// The times are those of a device that is as fast; four kernels take turns.
void burst(int launches) {
  static constexpr const char* kNames[] = {
      "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas",
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE",
      "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIffffEEjfLi4EEEEEvT1_",
      "tiny_kernel"};
  const uint64_t begin = now();
  for (int i = 0; i < launches; ++i) {
    const uint64_t at = now();
    ++correlation;
    call(211, at, at + 100);
    kernel(kNames[i % 4], at + 110, at + 150);
  }
  std::printf("%.1f\n", static_cast<double>(now() - begin) / launches);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scene = argc > 1 ? argv[1] : "training";
  const int count = argc > 2 ? std::atoi(argv[2]) : 20;
  if (scene == "nothing") return 0;
  if (scene == "children") {
    for (int i = 0; i < 2; ++i) {
      if (fork() == 0) {
        setenv("RANK", i == 0 ? "0" : "1", 1);
        setenv("WORLD_SIZE", "2", 1);
        execl(argv[0], argv[0], "training", argc > 2 ? argv[2] : "20", nullptr);
        _exit(127);
      }
    }
    while (wait(nullptr) > 0) {
    }
    return 0;
  }
  initialise();
  device();
  if (scene == "training") training(count);
  if (scene == "tiny") tiny(count);
  if (scene == "burst") burst(count);
  while (scene == "endless") tiny(100);
  if (scene == "fork") {
    training(count);
    const pid_t child = fork();
    if (child == 0) {
      usleep(300000);
      exit(3);  // runs the handlers at exit, as Python's multiprocessing may
    }
    int status = 0;
    waitpid(child, &status, 0);
    training(count);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  if (scene == "exit7") return 7;
  if (scene == "segv") raise(SIGSEGV);
  if (scene == "kill9") {
    training(count);
    usleep(600000);
    raise(SIGKILL);
  }
  return 0;
}
