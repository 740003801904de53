# SPDX-License-Identifier: Apache-2.0
# What is derived from the op table. The program optable links only what the table needs and prints
# it as JSON; scripts/generate_ops.py makes from that
#   build/gen/tracefire/ops.h           typed C++ functions, included by lib, tools, tests and users
#   build/gen/python/_core/ops.pyi      stubs of the Python module's functions
#   docs/ops.md                         committed; tests/python/test_generate_ops.py compares it.
#                                       `ninja docs_ops` writes it.
if(NOT "core/ops" IN_LIST TRACEFIRE_ROOMS)
  return()
endif()

add_library(optable_main OBJECT "${PROJECT_SOURCE_DIR}/src/core/ops/optable_main.cpp")
tracefire_compile(optable_main)
add_executable(optable_program $<TARGET_OBJECTS:optable_main>)
set_target_properties(optable_program PROPERTIES OUTPUT_NAME optable LINKER_LANGUAGE CXX)
tracefire_link_rooms(optable_program core/base core/graph core/ops)

set(ops_generator "${PROJECT_SOURCE_DIR}/scripts/generate_ops.py")
set(ops_json "${TRACEFIRE_GEN_DIR}/ops.json")
set(ops_header "${TRACEFIRE_GEN_DIR}/tracefire/ops.h")
set(ops_stubs "${TRACEFIRE_GEN_DIR}/python/_core/ops.pyi")
file(MAKE_DIRECTORY "${TRACEFIRE_GEN_DIR}/tracefire" "${TRACEFIRE_GEN_DIR}/python/_core")
add_custom_command(
  OUTPUT "${ops_json}" "${ops_header}" "${ops_stubs}"
  COMMAND optable_program > "${ops_json}"
  COMMAND "${TRACEFIRE_PYTHON3}" "${ops_generator}" "${ops_json}" --header "${ops_header}"
          --stubs "${ops_stubs}"
  DEPENDS optable_program "${ops_generator}"
  COMMENT "Generating tracefire/ops.h from the op table"
  VERBATIM)
add_custom_target(tracefire_ops_header DEPENDS "${ops_header}")
add_custom_target(docs_ops
  COMMAND "${TRACEFIRE_PYTHON3}" "${ops_generator}" "${ops_json}" --docs
          "${PROJECT_SOURCE_DIR}/docs/ops.md"
  DEPENDS "${ops_json}" "${ops_generator}"
  VERBATIM)

# Rooms that may include tracefire/ops.h wait for it; the rooms that it is made from cannot.
foreach(room IN LISTS TRACEFIRE_ROOMS)
  if(room MATCHES "^(lib|tools)/")
    string(REPLACE "/" "_" name "room_${room}")
    foreach(object IN LISTS TRACEFIRE_OBJECTS_${name})
      add_dependencies(${object} tracefire_ops_header)
    endforeach()
  endif()
endforeach()
