# SPDX-License-Identifier: Apache-2.0
# Loops of a single operation, ready when the program starts: ready_loops_program writes their text
# with the emitter that also writes fused loops at run time; NVRTC compiles it as it does the kernels
# of Kernels.cmake. The result is build/gen/backends/cuda/ready_loop_images.cpp, part of the room.

if(NOT TRACEFIRE_CUDA OR NOT "backends/cuda" IN_LIST TRACEFIRE_ROOMS)
  return()
endif()
set(emit_dir "${PROJECT_SOURCE_DIR}/src/backends/cuda/emit")
add_library(ready_loops_objects OBJECT
               "${emit_dir}/ready_loops_main.cpp" "${emit_dir}/ready_loops.cpp"
               "${emit_dir}/loop_source.cpp" "${emit_dir}/device_library.cpp"
               "${PROJECT_SOURCE_DIR}/src/backends/api/loop.cpp")
tracefire_compile(ready_loops_objects)
target_link_libraries(ready_loops_objects PRIVATE room_backends_api)
add_executable(ready_loops_program $<TARGET_OBJECTS:ready_loops_objects>)
set_target_properties(ready_loops_program PROPERTIES OUTPUT_NAME ready_loops LINKER_LANGUAGE CXX)
tracefire_link_rooms(ready_loops_program core/base)

set(loops_dir "${PROJECT_BINARY_DIR}/kernels/loops")
file(MAKE_DIRECTORY "${loops_dir}")
set(ready_loop_sources)
foreach(family unary binary compare cast other)
  list(APPEND ready_loop_sources "${loops_dir}/loops_${family}.cu")
endforeach()
add_custom_command(
  OUTPUT ${ready_loop_sources}
  COMMAND ready_loops_program "${loops_dir}"
  DEPENDS ready_loops_program
  COMMENT "Writing the loops of single operations"
  VERBATIM)
set(ready_loop_images "${TRACEFIRE_GEN_DIR}/backends/cuda/ready_loop_images.cpp")
add_custom_command(
  OUTPUT "${ready_loop_images}"
  COMMAND "${TRACEFIRE_PYTHON3}" "${PROJECT_SOURCE_DIR}/scripts/compile_kernels.py" ${image_options}
          --function ready_loop_images --keep "${PROJECT_BINARY_DIR}/kernels" --out
          "${ready_loop_images}" ${ready_loop_sources}
  DEPENDS "${PROJECT_SOURCE_DIR}/scripts/compile_kernels.py" ${ready_loop_sources}
  COMMENT "Compiling the loops of single operations with NVRTC"
  VERBATIM)
add_library(room_backends_cuda_loops OBJECT "${ready_loop_images}")
tracefire_compile(room_backends_cuda_loops)
list(APPEND TRACEFIRE_ROOM_OBJECTS room_backends_cuda_loops)
list(APPEND TRACEFIRE_OBJECTS_room_backends_cuda room_backends_cuda_loops)
