# SPDX-License-Identifier: Apache-2.0
# Files made from data (schema/*.json and the like) into build/gen, which is an include root.

set(TRACEFIRE_GEN_DIR "${PROJECT_BINARY_DIR}/gen")
file(MAKE_DIRECTORY "${TRACEFIRE_GEN_DIR}")
find_program(TRACEFIRE_PYTHON3 NAMES python3 REQUIRED)
execute_process(COMMAND "${TRACEFIRE_PYTHON3}" -c "import sys; sys.exit(sys.version_info < (3, 8))"
                RESULT_VARIABLE too_old)
if(too_old)
  message(FATAL_ERROR "${TRACEFIRE_PYTHON3} is older than Python 3.8, which the generators need. Put a newer "
                      "one first in PATH, or configure with -DTRACEFIRE_PYTHON3=/path/to/python3.")
endif()
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

# Every scripts/generate/NAME.py is a generator that says itself what it reads and writes:
#   NAME.py --root TREE --list-inputs    prints its input files, one a line, relative to TREE
#   NAME.py --root TREE --list-outputs   prints its output files, one a line, relative to build/gen
#   NAME.py --root TREE --out build/gen  writes them
# What they share lies in files whose names begin with '_'.
file(GLOB generators CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/scripts/generate/*.py")
set(shared_by_generators ${generators})
list(FILTER shared_by_generators INCLUDE REGEX "/_[^/]*$")
list(FILTER generators EXCLUDE REGEX "/_[^/]*$")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shared_by_generators})
foreach(generator IN LISTS generators)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${generator}")
  foreach(kind inputs outputs)
    execute_process(
      COMMAND "${TRACEFIRE_PYTHON3}" "${generator}" --root "${PROJECT_SOURCE_DIR}" --list-${kind}
      OUTPUT_VARIABLE ${kind} RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "${generator} --list-${kind} failed (${failed}); a generator must print "
                          "its ${kind}, one a line. Run it by hand to see why.")
    endif()
    string(STRIP "${${kind}}" ${kind})
    string(REPLACE "\n" ";" ${kind} "${${kind}}")
  endforeach()
  list(TRANSFORM inputs PREPEND "${PROJECT_SOURCE_DIR}/")
  list(TRANSFORM outputs PREPEND "${TRACEFIRE_GEN_DIR}/")
  get_filename_component(name "${generator}" NAME_WE)
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND "${TRACEFIRE_PYTHON3}" "${generator}" --root "${PROJECT_SOURCE_DIR}"
            --out "${TRACEFIRE_GEN_DIR}"
    DEPENDS "${generator}" ${shared_by_generators} ${inputs}
    COMMENT "Generating ${name}"
    VERBATIM)
  add_custom_target(generate_${name} DEPENDS ${outputs})
  add_dependencies(tracefire_generated generate_${name})
  foreach(output IN LISTS outputs)
    if(output MATCHES "\\.cpp$")
      list(APPEND TRACEFIRE_GENERATED_CPP "${output}")
    endif()
  endforeach()
endforeach()
