# SPDX-License-Identifier: Apache-2.0
# Ready GPU kernels: src/backends/cuda/kernels/*.cu, CUDA C++ text compiled by NVRTC while building
# (scripts/compile_kernels.py opens libnvrtc; nothing links to it). They need no header of CUDA; what
# they share lies in *.cuh beside them. The result is build/gen/backends/cuda/ready_images.cpp.

if(NOT TRACEFIRE_CUDA)
  return()
endif()
set(kernel_dir "${PROJECT_SOURCE_DIR}/src/backends/cuda/kernels")
file(GLOB kernel_sources CONFIGURE_DEPENDS "${kernel_dir}/*.cu")
file(GLOB kernel_headers CONFIGURE_DEPENDS "${kernel_dir}/*.cuh")
if(NOT kernel_sources)
  return()
endif()

# "libnvrtc target": cubins from the oldest NVRTC that knows the architecture, PTX from the oldest
# supported one.
set(TRACEFIRE_KERNEL_IMAGES
    "${TRACEFIRE_NVRTC12_LIB} sm_90"
    "${TRACEFIRE_NVRTC12_LIB} compute_75")
set(image_options)
foreach(image IN LISTS TRACEFIRE_KERNEL_IMAGES)
  list(APPEND image_options --image "${image}")
endforeach()
set(ready_images "${TRACEFIRE_GEN_DIR}/backends/cuda/ready_images.cpp")
file(MAKE_DIRECTORY "${TRACEFIRE_GEN_DIR}/backends/cuda")
add_custom_command(
  OUTPUT "${ready_images}"
  COMMAND "${TRACEFIRE_PYTHON3}" "${PROJECT_SOURCE_DIR}/scripts/compile_kernels.py" ${image_options}
          --keep "${PROJECT_BINARY_DIR}/kernels" --out "${ready_images}" ${kernel_sources}
  DEPENDS "${PROJECT_SOURCE_DIR}/scripts/compile_kernels.py" ${kernel_sources} ${kernel_headers}
  COMMENT "Compiling the ready GPU kernels with NVRTC"
  VERBATIM)
list(APPEND TRACEFIRE_GENERATED_CPP "${ready_images}")
