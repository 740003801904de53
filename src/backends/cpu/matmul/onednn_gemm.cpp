// SPDX-License-Identifier: Apache-2.0
// The one file that knows oneDNN. Every call runs on the thread that makes it: our pool decides
// what runs in parallel, because a barrier of OpenMP's threads waits whole scheduler slices where
// a core is busy.

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/matmul/gemm.h"

#if TRACEFIRE_HAS_ONEDNN
#include <dlfcn.h>
#include <signal.h>

#include <cstdlib>
#include <dnnl.hpp>
#include <filesystem>
#endif

namespace tracefire::cpu {

#if TRACEFIRE_HAS_ONEDNN
namespace {

/// Sets OpenMP to one thread in this thread for a moment: the process may use OpenMP elsewhere.
/// Primitives are made and run under the same setting. The library brings OpenMP with it.
class OneOpenMpThread {
 public:
  OneOpenMpThread() {
    if (functions().get == nullptr || functions().set == nullptr) return;
    before_ = functions().get();
    if (before_ != 1) functions().set(1);
  }
  ~OneOpenMpThread() {
    if (before_ > 1) functions().set(before_);
  }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  struct Functions {
    int (*get)();
    void (*set)(int);
  };
  static const Functions& functions() {
    static const Functions found = {
        reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads")),
        reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))};
    return found;
  }
  int before_ = 1;
};

/// Keeps signals away while it lives: generated code uses scratch memory as its stack, and a
/// handler's frame, which lies below the stack, would overwrite what is there. What arrives waits.
/// Faults of the code itself still come through.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

const dnnl::engine& engine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// What a thread needs to run primitives: a stream, and scratch memory that grows.
struct ThreadState {
  dnnl::stream stream{engine()};
  void* scratch = nullptr;
  size_t size = 0;
  ~ThreadState() { std::free(scratch); }
  void* reserve(size_t bytes) {
    if (bytes > size) {
      std::free(scratch);
      size = (bytes + 4095) / 4096 * 4096;
      scratch = std::aligned_alloc(4096, size);
    }
    return scratch;
  }
};

dnnl::memory::data_type data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return dnnl::memory::data_type::f32;
    case DType::kBF16:
      return dnnl::memory::data_type::bf16;
    case DType::kF16:
      return dnnl::memory::data_type::f16;
    case DType::kI8:
      return dnnl::memory::data_type::s8;
    case DType::kU8:
      return dnnl::memory::data_type::u8;
    case DType::kI32:
      return dnnl::memory::data_type::s32;
    default:
      return dnnl::memory::data_type::undef;
  }
}

class OneDnnGemm final : public Gemm {
 public:
  OneDnnGemm(const GemmTypes& types, const GemmShape& s) {
    using Dims = dnnl::memory::dims;
    a_ = dnnl::memory::desc(Dims{s.m, s.k}, data_type(types.a), Dims{s.a_row, s.a_column});
    b_ = dnnl::memory::desc(Dims{s.k, s.n}, data_type(types.b), Dims{s.b_row, s.b_column});
    c_ = dnnl::memory::desc(Dims{s.m, s.n}, data_type(types.c), Dims{s.c_row, 1});
    dnnl::primitive_attr attributes;
    // Scratch memory is ours: a primitive then runs in several threads at once.
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description(engine(), a_, b_, c_, attributes);
    primitive_ = dnnl::matmul(description);
    scratch_ = description.scratchpad_desc();
    name_ = std::string("onednn_") + description.impl_info_str();
  }

  void run(const void* a, const void* b, void* c) const override {
    const OneOpenMpThread one;
    const NoSignals quiet;
    thread_local ThreadState state;
    dnnl::memory scratch(scratch_, engine(), state.reserve(scratch_.get_size()));
    primitive_.execute(state.stream,
                       {{DNNL_ARG_SRC, dnnl::memory(a_, engine(), const_cast<void*>(a))},
                        {DNNL_ARG_WEIGHTS, dnnl::memory(b_, engine(), const_cast<void*>(b))},
                        {DNNL_ARG_DST, dnnl::memory(c_, engine(), c)},
                        {DNNL_ARG_SCRATCHPAD, scratch}});
    state.stream.wait();
  }
  std::string name() const override { return name_; }

 private:
  dnnl::memory::desc a_, b_, c_, scratch_;
  dnnl::matmul primitive_;
  std::string name_;
};

}  // namespace

bool has_onednn() { return true; }

bool has_exact_int8() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

std::shared_ptr<const Gemm> make_onednn_gemm(const GemmTypes& types, const GemmShape& shape,
                                             std::string* refusal) {
  for (const DType dtype : {types.a, types.b, types.c}) {
    if (data_type(dtype) != dnnl::memory::data_type::undef) continue;
    *refusal = std::string("no products of ") + std::string(dtype_name(dtype));
    return nullptr;
  }
  const OneOpenMpThread one;
  try {
    return std::make_shared<OneDnnGemm>(types, shape);
  } catch (const dnnl::error& failure) {
    *refusal = failure.what();
    return nullptr;
  }
}

#else

bool has_onednn() { return false; }
bool has_exact_int8() { return false; }

std::shared_ptr<const Gemm> make_onednn_gemm(const GemmTypes&, const GemmShape&,
                                             std::string* refusal) {
  *refusal = "this build has no oneDNN";
  return nullptr;
}

#endif

}  // namespace tracefire::cpu

namespace tracefire {

std::vector<UsedLibrary> cpu_libraries() {
#if TRACEFIRE_HAS_ONEDNN
  const dnnl_version_t* version = dnnl_version();
  Dl_info file;
  std::string path;
  if (dladdr(reinterpret_cast<const void*>(&dnnl_version), &file) != 0 &&
      file.dli_fname != nullptr) {
    std::error_code unknown;
    path = std::filesystem::weakly_canonical(file.dli_fname, unknown).string();
  }
  const std::string text = std::to_string(version->major) + "." + std::to_string(version->minor) +
                           "." + std::to_string(version->patch);
  return {{"oneDNN", text, path, "linked"}};
#else
  return {};
#endif
}

}  // namespace tracefire
