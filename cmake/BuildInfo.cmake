# SPDX-License-Identifier: Apache-2.0
# Run at each build: writes the version and the commit into OUTPUT, where they have changed.
#   cmake -DSOURCE_DIR=… -DVERSION=… -DOUTPUT=… -DPYTHON_OUTPUT=… -P BuildInfo.cmake
set(commit "")
find_program(git_command git)
if(git_command AND EXISTS "${SOURCE_DIR}/.git")  # not the repository that an archive lies in
  # A checkout of another user (a container's root builds it) is asked all the same: this build runs
  # its scripts anyway.
  set(git "${git_command}" -c "safe.directory=${SOURCE_DIR}")
  execute_process(COMMAND ${git} rev-parse --short=12 HEAD WORKING_DIRECTORY "${SOURCE_DIR}"
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    set(commit "")
  else()
    execute_process(COMMAND ${git} -c core.fsmonitor=false status --porcelain --untracked-files=no
                    WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND commit "+changes")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "// Written by cmake/BuildInfo.cmake; do not edit.
#pragma once
namespace tracefire {
inline constexpr char kVersion[] = \"${VERSION}\";
inline constexpr char kCommit[] = \"${commit}\";
}  // namespace tracefire
")
file(CONFIGURE OUTPUT "${PYTHON_OUTPUT}" CONTENT "# Written by cmake/BuildInfo.cmake; do not edit.
commit = \"${commit}\"
")
