# SPDX-License-Identifier: Apache-2.0
# Ready GPU kernels: src/backends/cuda/**/*.cu are CUDA C++ text, compiled while building.
# TRACEFIRE_NVRTC12_LIB and TRACEFIRE_NVRTC13_LIB are found in ThirdParty.cmake.
