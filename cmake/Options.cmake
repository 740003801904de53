# SPDX-License-Identifier: Apache-2.0
# How everything is compiled. Included once, from the top CMakeLists.txt.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
set(TRACEFIRE_SANITIZE "" CACHE STRING "Sanitizers: 'address,undefined' or 'thread' (clang, -O1)")

set(TRACEFIRE_ONLY_ROOMS "" CACHE STRING "Build only these rooms and no library: 'core/base;core/graph'")
set(TRACEFIRE_ONLY_TESTS "" CACHE STRING "Build only the test sources of these folders of tests/")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib")

# -g1: line tables only, enough for backtraces and sanitizers at a tenth of the size of -g.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
# Neither compiler may contract a*b+c by itself: only the fuse pass does, and says so.
add_compile_options(-Wall -Wextra -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety)
else()
  # GCC 12 warns of additions of std::string that are right (GCC bugs 105651 and 105329).
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
# __FILE__ and debug information name files relative to the tree, whatever folder it lies in. (ccache
# hands the compiler paths relative to the build folder.)
file(RELATIVE_PATH source_from_build "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
add_compile_options("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=" "-fmacro-prefix-map=${source_from_build}="
                    "-fdebug-prefix-map=${PROJECT_BINARY_DIR}=." "-fdebug-prefix-map=${source_from_build}=")
find_package(Threads REQUIRED)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 11)
  message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} is too old: Tracefire needs g++ 11 or newer, "
                      "or clang++ 14 or newer. Choose one with -DCMAKE_CXX_COMPILER=...")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR "clang++ ${CMAKE_CXX_COMPILER_VERSION} is too old: Tracefire needs clang++ 14 or "
                      "newer, or g++ 11 or newer. Choose one with -DCMAKE_CXX_COMPILER=...")
endif()

if(TRACEFIRE_SANITIZE)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TRACEFIRE_SANITIZE=${TRACEFIRE_SANITIZE} is set with "
                        "${CMAKE_CXX_COMPILER_ID}: sanitizers are used with clang++ only. "
                        "Add -DCMAKE_CXX_COMPILER=clang++.")
  endif()
  set(CMAKE_BUILD_TYPE Sanitize)
  set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
  add_compile_options("-fsanitize=${TRACEFIRE_SANITIZE}")
  add_link_options("-fsanitize=${TRACEFIRE_SANITIZE}")
  if(TRACEFIRE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

if(TRACEFIRE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage that libFuzzer steers by
endif()

# The fastest linker that is there.
find_program(TRACEFIRE_LLD ld.lld)
find_program(TRACEFIRE_GOLD ld.gold)
if(TRACEFIRE_LLD)
  add_link_options(-fuse-ld=lld)
elseif(TRACEFIRE_GOLD)
  add_link_options(-fuse-ld=gold)
endif()
mark_as_advanced(TRACEFIRE_LLD TRACEFIRE_GOLD)

# ccache, told how to treat the precompiled header and that folders do not matter: a second clone
# of the same commit finds everything that the first one compiled.
find_program(TRACEFIRE_CCACHE ccache)
mark_as_advanced(TRACEFIRE_CCACHE)
if(TRACEFIRE_CCACHE AND (NOT CMAKE_CXX_COMPILER_LAUNCHER
                         OR CMAKE_CXX_COMPILER_LAUNCHER MATCHES "(^|/)ccache$"))
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
      CCACHE_NOHASHDIR=1
      CCACHE_PCH_EXTSUM=1
      "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
      "${TRACEFIRE_CCACHE}")
endif()

# Translation units that need gigabytes are compiled one at a time.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS heavy=1)
