# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: each tests/fuzz/NAME.cpp is a libFuzzer entry and becomes build/fuzz/NAME. Clang
# only; sanitizers come from TRACEFIRE_SANITIZE, for example
#   cmake -B build-fuzz -DTRACEFIRE_FUZZ=ON -DTRACEFIRE_SANITIZE=address,undefined
#         -DCMAKE_CXX_COMPILER=clang++ "-DTRACEFIRE_ONLY_ROOMS=core/base;core/graph;core/ops"
# A target whose line `// Rooms: a b` names a room that is not built is left out, and said so.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "TRACEFIRE_FUZZ is set with ${CMAKE_CXX_COMPILER_ID}: libFuzzer comes with "
                      "clang++ only. Add -DCMAKE_CXX_COMPILER=clang++.")
endif()
file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp")
add_custom_target(fuzz)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name "${source}" NAME_WE)
  tracefire_fuzz_entry(fuzz_${name}_entry "${source}" missing)
  if(missing)
    message(STATUS "Fuzz target ${name} is left out: it needs the rooms ${missing}")
    continue()
  endif()
  add_executable(fuzz_${name} $<TARGET_OBJECTS:fuzz_${name}_entry>)
  set_target_properties(fuzz_${name} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  tracefire_link_rooms(fuzz_${name} ${TRACEFIRE_ROOMS})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz fuzz_${name})
endforeach()
