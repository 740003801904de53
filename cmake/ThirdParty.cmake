# SPDX-License-Identifier: Apache-2.0
# Finds what the rooms may use from outside; downloads nothing. What is missing is named together
# with the command that brings it. Makes one INTERFACE target tf_ext_<group> for each group that
# scripts/lint/rooms.json lists under "external".

set(TRACEFIRE_DEPS_DIR "$ENV{TRACEFIRE_DEPS_DIR}" CACHE PATH "Where scripts/fetch_deps put its files")
if(NOT TRACEFIRE_DEPS_DIR)
  set(TRACEFIRE_DEPS_DIR "${PROJECT_SOURCE_DIR}/build/deps" CACHE PATH "" FORCE)
endif()

# tracefire_external(group [HEADER file] [LIBRARY file] [HINTS dir...] [FROM text] [OPTIONAL])
# A group of headers and, with LIBRARY, the static library that goes with them. FROM says what brings
# them where they are missing.
function(tracefire_external group)
  cmake_parse_arguments(ARG "OPTIONAL" "HEADER;LIBRARY;FROM" "HINTS" ${ARGN})
  add_library(tf_ext_${group} INTERFACE)
  if(ARG_HEADER)
    find_path(TRACEFIRE_${group}_INCLUDE "${ARG_HEADER}" HINTS ${ARG_HINTS})
    mark_as_advanced(TRACEFIRE_${group}_INCLUDE)
    if(TRACEFIRE_${group}_INCLUDE)
      if(NOT TRACEFIRE_${group}_INCLUDE STREQUAL "/usr/include")
        target_include_directories(tf_ext_${group} SYSTEM INTERFACE "${TRACEFIRE_${group}_INCLUDE}")
      endif()
    elseif(NOT ARG_OPTIONAL)
      message(FATAL_ERROR "The header ${ARG_HEADER} was not found. ${ARG_FROM}")
    endif()
  endif()
  if(ARG_LIBRARY)
    find_library(TRACEFIRE_${group}_LIBRARY NAMES "${ARG_LIBRARY}" HINTS ${ARG_HINTS})
    mark_as_advanced(TRACEFIRE_${group}_LIBRARY)
    if(NOT TRACEFIRE_${group}_LIBRARY)
      message(FATAL_ERROR "The static library ${ARG_LIBRARY} was not found. ${ARG_FROM}")
    endif()
    target_link_libraries(tf_ext_${group} INTERFACE "${TRACEFIRE_${group}_LIBRARY}")
  endif()
endfunction()

set(apt_hint "Run scripts/setup, or install it with: apt-get install")
tracefire_external(json HEADER nlohmann/json.hpp FROM "${apt_hint} nlohmann-json3-dev")
tracefire_external(cli11 HEADER CLI/CLI.hpp FROM "${apt_hint} libcli11-dev")
set(TRACEFIRE_X86_64 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TRACEFIRE_X86_64 ON)
endif()
if(NOT TRACEFIRE_TOOLS_ONLY)
  tracefire_external(highway HEADER hwy/highway.h FROM "${apt_hint} libhwy-dev")
  tracefire_external(libdeflate HEADER libdeflate.h LIBRARY libdeflate.a FROM "${apt_hint} libdeflate-dev")
  tracefire_external(doctest HEADER doctest/doctest.h FROM "${apt_hint} doctest-dev")
  if(TRACEFIRE_X86_64)
    tracefire_external(xbyak HEADER xbyak/xbyak.h FROM "${apt_hint} libxbyak-dev")
  else()
    tracefire_external(xbyak)
  endif()
endif()

# What else a build ships: the licence texts of what is compiled in, as the packages above bring them.
# tracefire_licence(package): a file that install(FILES) puts into every installation and wheel.
set(TRACEFIRE_LICENCE_PACKAGES)
function(tracefire_licence package)
  list(TRANSFORM CMAKE_PREFIX_PATH APPEND "/share/doc/${package}" OUTPUT_VARIABLE hints)
  find_file(TRACEFIRE_LICENCE_${package} copyright HINTS ${hints} PATHS "/usr/share/doc/${package}"
            NO_DEFAULT_PATH)
  mark_as_advanced(TRACEFIRE_LICENCE_${package})
  if(TRACEFIRE_LICENCE_${package})
    set(TRACEFIRE_LICENCE_PACKAGES ${TRACEFIRE_LICENCE_PACKAGES} ${package} PARENT_SCOPE)
  else()
    message(WARNING "The licence of ${package} was not found: what is installed from this build lacks it, so do "
                    "not pass it on. Set TRACEFIRE_LICENCE_${package} to the file.")
  endif()
endfunction()
tracefire_licence(libcli11-dev)
tracefire_licence(nlohmann-json3-dev)
if(NOT TRACEFIRE_TOOLS_ONLY)
  tracefire_licence(libdeflate-dev)
  tracefire_licence(libhwy-dev)
  if(TRACEFIRE_X86_64)
    tracefire_licence(libxbyak-dev)
  endif()
endif()
# tracefire_install_licences(folder component): these, and oneDNN's.
function(tracefire_install_licences folder component)
  foreach(package IN LISTS TRACEFIRE_LICENCE_PACKAGES)
    install(FILES "${TRACEFIRE_LICENCE_${package}}" DESTINATION "${folder}" RENAME ${package}.txt
            COMPONENT ${component})
  endforeach()
  if(TRACEFIRE_ONEDNN)
    install(DIRECTORY "${TRACEFIRE_DEPS_DIR}/onednn/licence/" DESTINATION "${folder}/onednn"
            COMPONENT ${component})
  endif()
endfunction()

# oneDNN: the pinned wheel. build/lib gets a link to the library beside libtracefire.so, which finds
# it there through its rpath $ORIGIN.
option(TRACEFIRE_ONEDNN "Use oneDNN for matrix products on the CPU" ${TRACEFIRE_X86_64})
if(TRACEFIRE_TOOLS_ONLY)
  set(TRACEFIRE_ONEDNN OFF)
endif()
add_library(tf_ext_dnnl INTERFACE)
if(TRACEFIRE_ONEDNN)
  set(dnnl_dir "${TRACEFIRE_DEPS_DIR}/onednn")
  if(NOT EXISTS "${dnnl_dir}/lib/libdnnl.so.3" OR NOT EXISTS "${dnnl_dir}/include/oneapi/dnnl/dnnl.hpp")
    message(FATAL_ERROR "oneDNN 3.2 is not in ${dnnl_dir}. Run `make deps` (39 MB, pinned PyPI wheels), "
                        "or configure with -DTRACEFIRE_ONEDNN=OFF to use the library's own products.")
  endif()
  file(MAKE_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
  file(CREATE_LINK "${dnnl_dir}/lib/libdnnl.so.3" "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libdnnl.so.3"
       SYMBOLIC)
  target_include_directories(tf_ext_dnnl SYSTEM INTERFACE "${dnnl_dir}/include")
  target_link_libraries(tf_ext_dnnl INTERFACE "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libdnnl.so.3")
endif()

# CUDA: headers from a toolkit, else from the pinned wheels; the tools need them without the backend
# too. No NVIDIA library is ever linked.
option(TRACEFIRE_CUDA "Build the CUDA backend; needs headers only" ${TRACEFIRE_X86_64})
set(hide_toolkit_default OFF)
if("$ENV{TRACEFIRE_HIDE_CUDA_TOOLKIT}" AND NOT "$ENV{TRACEFIRE_HIDE_CUDA_TOOLKIT}" STREQUAL "0")
  set(hide_toolkit_default ON)
endif()
option(TRACEFIRE_HIDE_CUDA_TOOLKIT "Use the CUDA wheels even where a toolkit is installed"
       ${hide_toolkit_default})
add_library(tf_ext_cuda INTERFACE)
add_library(tf_ext_cudnn_frontend INTERFACE)
set(toolkits)
if(NOT TRACEFIRE_HIDE_CUDA_TOOLKIT)
  set(toolkits "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" /usr/local/cuda)
  list(FILTER toolkits EXCLUDE REGEX "^$")
endif()
list(TRANSFORM toolkits APPEND "/include" OUTPUT_VARIABLE toolkit_includes)
list(TRANSFORM toolkits APPEND "/lib64" OUTPUT_VARIABLE toolkit_libs)
# Headers, with the folder that has all three: a lone cuda.h is not enough.
set(TRACEFIRE_CUDA_INCLUDE "" CACHE PATH "Folder of cuda.h, nvrtc.h and cublasLt.h")
if(NOT TRACEFIRE_CUDA_INCLUDE)
  foreach(folder IN LISTS toolkit_includes ITEMS "${TRACEFIRE_DEPS_DIR}/cuda13/include")
    if(EXISTS "${folder}/cuda.h" AND EXISTS "${folder}/nvrtc.h" AND EXISTS "${folder}/cublasLt.h")
      set(TRACEFIRE_CUDA_INCLUDE "${folder}" CACHE PATH "" FORCE)
      break()
    endif()
  endforeach()
endif()
if(NOT TRACEFIRE_CUDA_INCLUDE)
  message(FATAL_ERROR "cuda.h, nvrtc.h and cublasLt.h were found together neither in a CUDA toolkit nor "
                      "in ${TRACEFIRE_DEPS_DIR}/cuda13. Run `make deps` (about 520 MB, pinned PyPI wheels).")
endif()
message(STATUS "CUDA headers: ${TRACEFIRE_CUDA_INCLUDE}")
target_include_directories(tf_ext_cuda SYSTEM INTERFACE "${TRACEFIRE_CUDA_INCLUDE}")
if(TRACEFIRE_CUDA AND NOT TRACEFIRE_TOOLS_ONLY)
  # NVRTC compiles the ready kernels at build time. It is opened by a script, never linked.
  find_file(TRACEFIRE_NVRTC12_LIB libnvrtc.so.12 NO_DEFAULT_PATH
            PATHS "${TRACEFIRE_DEPS_DIR}/cuda12/lib" ${toolkit_libs}
            DOC "NVRTC 12, makes the PTX of the ready kernels")
  find_file(TRACEFIRE_NVRTC13_LIB libnvrtc.so.13 NO_DEFAULT_PATH
            PATHS ${toolkit_libs} "${TRACEFIRE_DEPS_DIR}/cuda13/lib"
            DOC "NVRTC 13, makes cubins for what NVRTC 12 does not know")
  foreach(major 12 13)
    if(NOT TRACEFIRE_NVRTC${major}_LIB)
      message(FATAL_ERROR "libnvrtc.so.${major} was not found: it compiles the ready GPU kernels while "
                          "building (no GPU is needed). Run `make deps`.")
    endif()
    message(STATUS "NVRTC ${major}: ${TRACEFIRE_NVRTC${major}_LIB}")
  endforeach()
endif()

# Every translation unit knows what is built in: `#if TRACEFIRE_HAS_CUDA`.
foreach(part CUDA ONEDNN)
  add_compile_definitions(TRACEFIRE_HAS_${part}=$<BOOL:${TRACEFIRE_${part}}>)
endforeach()
