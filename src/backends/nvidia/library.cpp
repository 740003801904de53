// SPDX-License-Identifier: Apache-2.0
#include "backends/nvidia/library.h"

namespace tracefire::nvidia {
namespace {

constexpr LibraryFacts kFacts[kLibraryCount] = {
    {Library::kDriver, "libcuda.so", "cuDriverGetVersion", "", "", true},
    {Library::kNvml, "libnvidia-ml.so", "", "", "", true},
    {Library::kNvrtc, "libnvrtc.so", "nvrtcVersion", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc",
     false},
    {Library::kCublasLt, "libcublasLt.so", "cublasLtGetVersion", "nvidia-cublas-cu12",
     "nvidia-cublas", false},
    // Asking cuBLAS for its version needs a handle and so a context; cuBLASLt is its twin.
    {Library::kCublas, "libcublas.so", "", "nvidia-cublas-cu12", "nvidia-cublas", false},
    {Library::kCudnn, "libcudnn.so", "cudnnGetVersion", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13",
     false},
    {Library::kNccl, "libnccl.so", "ncclGetVersion", "nvidia-nccl-cu12", "nvidia-nccl-cu13", false},
    {Library::kCupti, "libcupti.so", "cuptiGetVersion", "nvidia-cuda-cupti-cu12",
     "nvidia-cuda-cupti", false},
};

}  // namespace

const LibraryFacts& facts(Library library) { return kFacts[static_cast<int>(library)]; }

const std::array<Library, kLibraryCount>& all_libraries() {
  static constexpr std::array<Library, kLibraryCount> kAll = {
      Library::kDriver, Library::kNvml,  Library::kNvrtc, Library::kCublasLt,
      Library::kCublas, Library::kCudnn, Library::kNccl,  Library::kCupti,
  };
  return kAll;
}

int soname_number(Library library, int cuda_major) {
  switch (library) {
    case Library::kDriver:
    case Library::kNvml:
      return 1;
    case Library::kCudnn:
      return 9;
    case Library::kNccl:
      return 2;
    default:
      return cuda_major;
  }
}

std::string soname(Library library, int cuda_major) {
  return std::string(facts(library).stem) + "." +
         std::to_string(soname_number(library, cuda_major));
}

std::string how_to_install(Library library, int cuda_major, bool again) {
  const LibraryFacts& known = facts(library);
  if (known.part_of_driver) {
    return "Install the NVIDIA driver; in a container start it with --gpus all.";
  }
  const std::string package(cuda_major >= 13 ? known.pip13 : known.pip12);
  return (again ? "Install it again with `python3 -m pip install --force-reinstall "
                : "Install it with `python3 -m pip install ") +
         package + "`, or set TRACEFIRE_CUDA_PATH to the folder that holds " +
         (again ? "another one." : "it.");
}

std::string version_text(Library library, int64_t version) {
  const auto dotted = [](int64_t a, int64_t b, int64_t c) {
    std::string text = std::to_string(a) + "." + std::to_string(b);
    return c < 0 ? text : text + "." + std::to_string(c);
  };
  switch (library) {
    case Library::kDriver:
    case Library::kNvrtc:
      return dotted(version / 1000, version % 1000 / 10, -1);
    case Library::kCublas:
    case Library::kCublasLt:
      // 11.x and later: major * 10000 + minor * 100 + patch.
      return dotted(version / 10000, version / 100 % 100, version % 100);
    case Library::kCudnn:
      if (version < 10000) return dotted(version / 1000, version / 100 % 10, version % 100);
      return dotted(version / 10000, version / 100 % 100, version % 100);
    case Library::kNccl:
      return dotted(version / 10000, version / 100 % 100, version % 100);
    default:
      return std::to_string(version);
  }
}

}  // namespace tracefire::nvidia
