# SPDX-License-Identifier: Apache-2.0
# What is linked from the rooms: libtracefire.so, the command line, tools with binaries of their own.

# A linker that finds no symbol says so here, not when the program starts.
set(no_undefined)
if(NOT TRACEFIRE_SANITIZE)
  set(no_undefined LINKER:--no-undefined)
endif()

# For a wheel: the C++ library is linked in and hidden, so that it does not matter which is installed.
# libgcc_s stays shared: exceptions that pass from one library to another abort with two unwinders.
option(TRACEFIRE_STATIC_RUNTIME "Link libstdc++ statically into libtracefire.so and the Python module" OFF)
set(static_runtime -static-libstdc++ LINKER:--exclude-libs,ALL)

# libtracefire.so: every room. The Python module, the command line and users link to it.
add_library(tracefire SHARED "${pch_source}")
tracefire_link_rooms(tracefire ${TRACEFIRE_ROOMS})
target_include_directories(tracefire INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(tracefire INTERFACE cxx_std_20)
target_link_options(tracefire PRIVATE ${no_undefined}
                    "LINKER:--version-script,${PROJECT_SOURCE_DIR}/cmake/exports.map")
set_target_properties(tracefire PROPERTIES LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/exports.map")
if(TRACEFIRE_STATIC_RUNTIME)
  target_link_options(tracefire PRIVATE ${static_runtime})
endif()
set_target_properties(tracefire PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
add_library(tracefire::tracefire ALIAS tracefire)
target_compile_definitions(room_tools_observe_sources PRIVATE "TRACEFIRE_VERSION=\"${PROJECT_VERSION}\"")

include(GNUInstallDirs)
# Where programs find libtracefire.so: beside them, in the build, and where it is installed.
set(program_rpath "$ORIGIN" "$ORIGIN/../lib" "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
list(REMOVE_DUPLICATES program_rpath)
if(SKBUILD)  # in the wheel: tracefire/bin/tracefire and tracefire/libtracefire.so.0
  set(program_rpath "$ORIGIN/..")
endif()

# tracefire_program(name SOURCE file [ROOMS room...] [LIBRARY]): a program, made once its main exists.
# With LIBRARY it is linked to libtracefire.so, else it holds the objects of ROOMS.
function(tracefire_program name)
  cmake_parse_arguments(ARG "LIBRARY" "SOURCE" "ROOMS" ${ARGN})
  file(GLOB source CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${ARG_SOURCE}")
  if(NOT source)
    return()
  endif()
  add_library(${name}_main OBJECT "${source}")
  tracefire_compile(${name}_main)
  add_executable(${name}_program $<TARGET_OBJECTS:${name}_main>)
  set_target_properties(${name}_program PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
                        INSTALL_RPATH "${program_rpath}")
  if(ARG_LIBRARY)
    target_link_libraries(${name}_program PRIVATE tracefire)
  endif()
  tracefire_link_rooms(${name}_program ${ARG_ROOMS})
  set(TRACEFIRE_PROGRAMS ${TRACEFIRE_PROGRAMS} ${name}_program PARENT_SCOPE)
endfunction()

# The command line's code lies in libtracefire.so, where it reaches the tools; main.cpp only calls it.
# The commit lies in main.cpp alone, so that a new commit compiles and links nothing else.
add_custom_target(tracefire_build_info
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DVERSION=${PROJECT_VERSION}"
          "-DOUTPUT=${TRACEFIRE_GEN_DIR}/build_info.h" "-DPYTHON_OUTPUT=${TRACEFIRE_GEN_DIR}/_build.py"
          -P "${PROJECT_SOURCE_DIR}/cmake/BuildInfo.cmake"
  BYPRODUCTS "${TRACEFIRE_GEN_DIR}/build_info.h" "${TRACEFIRE_GEN_DIR}/_build.py"
  COMMENT "" VERBATIM)
tracefire_program(tracefire SOURCE src/tools/cli/main.cpp LIBRARY)
add_dependencies(tracefire_main tracefire_build_info)

# Manual pages and completions, printed by the program itself, laid out as below share/.
set(TRACEFIRE_SHARE_DIR "${PROJECT_BINARY_DIR}/share")
if(NOT CMAKE_CROSSCOMPILING)
  add_custom_command(OUTPUT "${TRACEFIRE_SHARE_DIR}/man/man1/tracefire.1"
    COMMAND tracefire_program --write-manual "${TRACEFIRE_SHARE_DIR}"
    DEPENDS tracefire_program COMMENT "Writing manual pages and completions" VERBATIM)
  add_custom_target(tracefire_manual ALL DEPENDS "${TRACEFIRE_SHARE_DIR}/man/man1/tracefire.1")
endif()
# These work for any framework, also where libtracefire.so is not.
tracefire_program(tracefire-doctor SOURCE src/tools/doctor/main.cpp
                  ROOMS core/base backends/nvidia tools/doctor tools/monitor tools/inject)
tracefire_program(tracefire-monitor SOURCE src/tools/monitor/main.cpp
                  ROOMS core/base backends/nvidia tools/monitor)
if(TARGET tracefire-monitor_main)
  target_compile_definitions(tracefire-monitor_main PRIVATE "TRACEFIRE_VERSION=\"${PROJECT_VERSION}\"")
endif()
tracefire_program(tracefire-prove SOURCE src/tools/inject/main.cpp
                  ROOMS core/base backends/nvidia tools/inject)
if(TARGET tracefire-prove_main)
  target_compile_definitions(tracefire-prove_main PRIVATE "TRACEFIRE_VERSION=\"${PROJECT_VERSION}\"")
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
target_link_options(tracefire_inject PRIVATE LINKER:-z,nodelete LINKER:--exclude-libs,ALL)
if(NOT TRACEFIRE_SANITIZE)
  target_link_options(tracefire_inject PRIVATE -static-libstdc++ -static-libgcc ${no_undefined})
endif()
