// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire::nvidia {

/// An NVIDIA library that is opened at run time; nothing links to one.
enum class Library : uint8_t {
  kDriver,    ///< libcuda.so.1, part of the driver
  kNvml,      ///< libnvidia-ml.so.1, part of the driver
  kNvrtc,     ///< run-time compiler
  kCublasLt,  ///< matrix products
  kCublas,    ///< needed by cuDNN
  kCudnn,     ///< cuDNN 9, one file name for both CUDA majors
  kNccl,      ///< collectives
  kCupti,     ///< per-kernel times
};
inline constexpr int kLibraryCount = 8;

/// What is known about a library before it is looked for.
struct LibraryFacts {
  Library library;
  std::string_view stem;            ///< "libcublasLt.so"; a file is stem + "." + number
  std::string_view version_symbol;  ///< function that tells the version, "" if there is none
  std::string_view pip12;           ///< package that brings it for CUDA 12, "" if none does
  std::string_view pip13;           ///< the same for CUDA 13
  bool part_of_driver;
};

const LibraryFacts& facts(Library library);
/// All libraries, in the order in which they are to be opened (dependencies first).
const std::array<Library, kLibraryCount>& all_libraries();
/// Number after ".so." for a CUDA major: 13 for cuBLASLt, 9 for cuDNN, 2 for NCCL, 1 for the
/// driver.
int soname_number(Library library, int cuda_major);
/// "libcublasLt.so.13".
std::string soname(Library library, int cuda_major);
/// "Install it with `python3 -m pip install nvidia-cublas`, or set TRACEFIRE_CUDA_PATH …": how to
/// get a library of a CUDA major; with `again`, in place of one that is there and does not work.
std::string how_to_install(Library library, int cuda_major, bool again = false);
/// Version as people write it, from the number the library itself gives: 120904 of cuBLASLt is
/// "12.9.4", 91900 of cuDNN "9.19.0", 22809 of NCCL "2.28.9".
std::string version_text(Library library, int64_t version);

}  // namespace tracefire::nvidia
