# SPDX-License-Identifier: Apache-2.0
# What is linked from the rooms: libtracefire.so, the command line, tools with binaries of their own.

# A linker that finds no symbol says so here, not when the program starts.
set(no_undefined)
if(NOT TRACEFIRE_SANITIZE)
  set(no_undefined LINKER:--no-undefined)
endif()

if(NOT TRACEFIRE_TOOLS_ONLY)
  include(Library)
endif()

include(GNUInstallDirs)
# Where programs find libtracefire.so: beside them, in the build, and where it is installed.
set(program_rpath "$ORIGIN" "$ORIGIN/../lib" "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
list(REMOVE_DUPLICATES program_rpath)
if(SKBUILD)  # in the wheel: tracefire/bin/tracefire and tracefire/libtracefire.so.0.x
  set(program_rpath "$ORIGIN/..")
endif()

# tracefire_program(name SOURCE file [ROOMS room...] [LIBRARY] [NO_INSTALL]): a program, made once its
# main exists. With LIBRARY it is linked to libtracefire.so, else it holds the objects of ROOMS.
function(tracefire_program name)
  cmake_parse_arguments(ARG "LIBRARY;NO_INSTALL" "SOURCE" "ROOMS" ${ARGN})
  file(GLOB source CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${ARG_SOURCE}")
  if(NOT source)
    return()
  endif()
  add_library(${name}_main OBJECT "${source}")
  tracefire_compile(${name}_main)
  foreach(room IN LISTS ARG_ROOMS)  # what their headers include
    string(REPLACE "/" "_" room "${room}")
    target_link_libraries(${name}_main PRIVATE room_${room})
  endforeach()
  add_executable(${name}_program $<TARGET_OBJECTS:${name}_main>)
  set_target_properties(${name}_program PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
                        INSTALL_RPATH "${program_rpath}")
  if(ARG_LIBRARY)
    target_link_libraries(${name}_program PRIVATE tracefire)
  endif()
  tracefire_link_rooms(${name}_program ${ARG_ROOMS})
  if(NOT ARG_NO_INSTALL)
    set(TRACEFIRE_PROGRAMS ${TRACEFIRE_PROGRAMS} ${name}_program PARENT_SCOPE)
  endif()
endfunction()

# The command line's code lies in libtracefire.so, where it reaches the tools; main.cpp only calls it.
# The commit lies in main.cpp alone, so that a new commit compiles and links nothing else.
add_custom_target(tracefire_build_info
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DVERSION=${PROJECT_VERSION}"
          "-DOUTPUT=${TRACEFIRE_GEN_DIR}/build_info.h" "-DPYTHON_OUTPUT=${TRACEFIRE_GEN_DIR}/_build.py"
          -P "${PROJECT_SOURCE_DIR}/cmake/BuildInfo.cmake"
  BYPRODUCTS "${TRACEFIRE_GEN_DIR}/build_info.h" "${TRACEFIRE_GEN_DIR}/_build.py"
  COMMENT "" VERBATIM)
# The tools alone, without the engine; `make dist` packs this program as `tracefire`.
tracefire_program(tracefire-tools SOURCE src/tools/cli/tools_main.cpp ROOMS ${TRACEFIRE_TOOL_ROOMS} NO_INSTALL)
add_dependencies(tracefire-tools_main tracefire_build_info)
if(NOT TRACEFIRE_TOOLS_ONLY)
  tracefire_program(tracefire SOURCE src/tools/cli/main.cpp LIBRARY)
  add_dependencies(tracefire_main tracefire_build_info)
endif()

# Manual pages and completions, printed by the program itself, laid out as below share/.
set(TRACEFIRE_SHARE_DIR "${PROJECT_BINARY_DIR}/share")
if(TARGET tracefire_program AND NOT CMAKE_CROSSCOMPILING)
  add_custom_command(OUTPUT "${TRACEFIRE_SHARE_DIR}/man/man1/tracefire.1"
    COMMAND tracefire_program --write-manual "${TRACEFIRE_SHARE_DIR}"
    DEPENDS tracefire_program COMMENT "Writing manual pages and completions" VERBATIM)
  add_custom_target(tracefire_manual ALL DEPENDS "${TRACEFIRE_SHARE_DIR}/man/man1/tracefire.1")
endif()
# `tracefire-doctor` is `tracefire-tools doctor`: the program looks at the name that it is called by.
if(TARGET tracefire-tools_program)
  foreach(command doctor monitor prove)
    add_custom_target(tracefire-${command}_program ALL
      COMMAND "${CMAKE_COMMAND}" -E create_symlink tracefire-tools "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tracefire-${command}"
      BYPRODUCTS "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tracefire-${command}"
      DEPENDS tracefire-tools_program COMMENT "" VERBATIM)
  endforeach()
endif()

# What `prove` loads into other programs. It brings its own C++ library, hidden, because the host
# may have an older one, and is never unloaded, because it has a thread and handlers at exit.
set(inject_dir "${PROJECT_SOURCE_DIR}/src/tools/inject")
file(GLOB inject_sources CONFIGURE_DEPENDS "${inject_dir}/aggregate*.cpp")
add_library(tracefire_inject MODULE "${inject_dir}/library_main.cpp" ${inject_sources}
                                    "${inject_dir}/api_class.cpp")
target_include_directories(tracefire_inject PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_compile_options(tracefire_inject PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics)
target_link_libraries(tracefire_inject PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(tracefire_inject PRIVATE LINKER:-z,nodelete
                    "LINKER:--version-script,${PROJECT_SOURCE_DIR}/cmake/inject.map")
set_target_properties(tracefire_inject PROPERTIES LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/inject.map")
if(NOT TRACEFIRE_SANITIZE)
  target_link_options(tracefire_inject PRIVATE -static-libstdc++ -static-libgcc ${no_undefined})
endif()
