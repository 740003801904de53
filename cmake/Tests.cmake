# SPDX-License-Identifier: Apache-2.0
# One test program for each folder of tests/ that holds C++ sources, at most ten (linking is what
# costs). They hold the objects of the rooms, so that they reach what libtracefire.so hides.
# tests/support is linked into all of them; fuzz targets and example programs are built elsewhere.

set(max_programs 10)
file(GLOB_RECURSE support_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cpp")
add_library(tests_support OBJECT ${support_sources})
tracefire_compile(tests_support)
target_include_directories(tests_support PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(tests_support PRIVATE tf_ext_doctest tf_ext_json)
# Only this file knows absolute paths, so that all others come from ccache in another clone.
set_property(SOURCE "${PROJECT_SOURCE_DIR}/tests/support/paths.cpp" APPEND PROPERTY COMPILE_DEFINITIONS
  "TRACEFIRE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"" "TRACEFIRE_BINARY_DIR=\"${PROJECT_BINARY_DIR}\"")

# Folders that share a program with others; any other folder is a program of its own.
set(program_core base graph grad trace compile runtime engine null regressions)
set(program_backends api ref cpu cuda nvidia)
set(program_lib data nn dist io)
set(program_tools text observe doctor monitor inject cli)

set(TRACEFIRE_TEST_GROUPS)
file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
     "${PROJECT_SOURCE_DIR}/tests/*.cpp")
foreach(source IN LISTS test_sources)
  string(REGEX REPLACE "/.*" "" group "${source}")
  if(group MATCHES "^(support|fuzz|programs|data)$")
    continue()
  endif()
  if(group MATCHES "^(cuda|nvidia)$" AND NOT TRACEFIRE_CUDA)  # they need the emulator
    continue()
  endif()
  if(TRACEFIRE_ONLY_TESTS AND NOT group IN_LIST TRACEFIRE_ONLY_TESTS)
    continue()
  endif()
  foreach(program core backends lib tools)
    if(group IN_LIST program_${program})
      set(group ${program})
    endif()
  endforeach()
  list(APPEND TRACEFIRE_TEST_GROUPS ${group})
  list(APPEND test_sources_${group} "${PROJECT_SOURCE_DIR}/tests/${source}")
endforeach()
list(REMOVE_DUPLICATES TRACEFIRE_TEST_GROUPS)
list(LENGTH TRACEFIRE_TEST_GROUPS group_count)
if(group_count GREATER max_programs)
  message(FATAL_ERROR "tests/ has ${group_count} folders with C++ sources (${TRACEFIRE_TEST_GROUPS}); at most "
                      "${max_programs} test programs are built. Put the new tests into one of the others.")
endif()

foreach(group IN LISTS TRACEFIRE_TEST_GROUPS)
  add_library(tests_${group} OBJECT ${test_sources_${group}})
  tracefire_compile(tests_${group})
  if(TARGET tracefire_ops_header)
    add_dependencies(tests_${group} tracefire_ops_header)
  endif()
  target_include_directories(tests_${group} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(tests_${group} PRIVATE tf_ext_doctest tf_ext_json tf_ext_cuda)
  add_executable(test_${group} $<TARGET_OBJECTS:tests_${group}> $<TARGET_OBJECTS:tests_support>)
  set_target_properties(test_${group} PROPERTIES
    LINKER_LANGUAGE CXX RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  tracefire_link_rooms(test_${group} ${TRACEFIRE_ROOMS})
  # Labels are part of a case's name, in brackets: TEST_CASE("observe from four threads [threads]").
  # [deep] cases run in `make test-deep` alone; [threads] ones also under the thread sanitizer.
  add_test(NAME ${group} COMMAND test_${group} "--test-case-exclude=*[deep]*")
  set_tests_properties(${group} PROPERTIES LABELS quick)
  add_test(NAME ${group}_deep COMMAND test_${group} "--test-case=*[deep]*")
  set_tests_properties(${group}_deep PROPERTIES LABELS deep)
  add_test(NAME ${group}_threads COMMAND test_${group} "--test-case=*[threads]*")
  set_tests_properties(${group}_threads PROPERTIES LABELS threads)
endforeach()
if(TRACEFIRE_CUDA)
  add_subdirectory("${PROJECT_SOURCE_DIR}/tests/nvidia/emulator" "${PROJECT_BINARY_DIR}/tests/emulator")
  if(TARGET test_backends)
    add_dependencies(test_backends tf_cuda_emulator)
  endif()
  if(TARGET test_tools)  # the doctor tries the emulated GPU out
    add_dependencies(test_tools tf_cuda_emulator)
  endif()
endif()
if(EXISTS "${PROJECT_SOURCE_DIR}/tests/inject/fake" AND TARGET tracefire_inject)
  add_subdirectory("${PROJECT_SOURCE_DIR}/tests/inject/fake" "${PROJECT_BINARY_DIR}/tests/inject_fake")
  if(TARGET test_tools)
    add_dependencies(test_tools tf_fake_cupti tf_fake_gpu_program tracefire_inject tracefire-prove_program)
  endif()
endif()
add_custom_target(tests_all)
foreach(group IN LISTS TRACEFIRE_TEST_GROUPS)
  add_dependencies(tests_all test_${group})
endforeach()
if(NOT TRACEFIRE_ONLY_TESTS OR "monitor" IN_LIST TRACEFIRE_ONLY_TESTS)
  add_subdirectory("${PROJECT_SOURCE_DIR}/tests/monitor/fake_nvml" "${PROJECT_BINARY_DIR}/tests/fake_nvml")
  add_dependencies(tests_all tf_fake_nvml_new tf_fake_nvml_old)
endif()
