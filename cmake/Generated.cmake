# SPDX-License-Identifier: Apache-2.0
# Files made from data (schema/*.json and the like) into build/gen, which is an include root.

set(TRACEFIRE_GEN_DIR "${PROJECT_BINARY_DIR}/gen")
file(MAKE_DIRECTORY "${TRACEFIRE_GEN_DIR}")
find_program(TRACEFIRE_PYTHON3 NAMES python3 REQUIRED)
add_custom_target(tracefire_generated)
set(TRACEFIRE_GENERATED_CPP)

# tracefire_generate(OUTPUT file SCRIPT script INPUTS file...)
# Runs `python3 SCRIPT INPUTS... build/gen/OUTPUT` (standard library only) before anything is
# compiled. An output that ends in .cpp is compiled by the room whose folder it lies in:
# core/base/x.cpp belongs to src/core/base.
function(tracefire_generate)
  cmake_parse_arguments(ARG "" "OUTPUT;SCRIPT" "INPUTS" ${ARGN})
  set(output "${TRACEFIRE_GEN_DIR}/${ARG_OUTPUT}")
  get_filename_component(folder "${output}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  list(TRANSFORM ARG_INPUTS PREPEND "${PROJECT_SOURCE_DIR}/")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${TRACEFIRE_PYTHON3}" "${PROJECT_SOURCE_DIR}/${ARG_SCRIPT}" ${ARG_INPUTS} "${output}"
    DEPENDS "${PROJECT_SOURCE_DIR}/${ARG_SCRIPT}" ${ARG_INPUTS}
    COMMENT "Generating ${ARG_OUTPUT}"
    VERBATIM)
  string(MAKE_C_IDENTIFIER "generate_${ARG_OUTPUT}" name)
  add_custom_target(${name} DEPENDS "${output}")
  add_dependencies(tracefire_generated ${name})
  if(output MATCHES "\\.cpp$")
    set(TRACEFIRE_GENERATED_CPP ${TRACEFIRE_GENERATED_CPP} "${output}" PARENT_SCOPE)
  endif()
endfunction()

tracefire_generate(OUTPUT error_codes.h SCRIPT scripts/generate_errors.py INPUTS schema/errors.json)
