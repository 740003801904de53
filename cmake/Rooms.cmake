# SPDX-License-Identifier: Apache-2.0
# One OBJECT library a room, made from scripts/lint/rooms.json, the one table of rooms.
# A room without a source yet is an INTERFACE library, so that it may exist before its code.

# tracefire_room(NAME name DIR dir [EXTERNAL group...])
# Makes target room_<name> (slashes become underscores). Sources: every .cpp below DIR, or DIR itself
# when it is a file. Left out: *main.cpp (a program's entry point, see Products.cmake). A source named
# *_heavy.cpp needs gigabytes to compile and goes through the job pool 'heavy'.
# Appends the object targets to TRACEFIRE_ROOM_OBJECTS in the caller's scope.
function(tracefire_room)
  cmake_parse_arguments(ARG "" "NAME;DIR" "EXTERNAL" ${ARGN})
  string(REPLACE "/" "_" target "room_${ARG_NAME}")
  set(path "${PROJECT_SOURCE_DIR}/${ARG_DIR}")
  if(ARG_DIR MATCHES "\\.cpp$")
    file(GLOB sources CONFIGURE_DEPENDS "${path}")
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${path}/*.cpp")
    list(FILTER sources EXCLUDE REGEX "main\\.cpp$")
    # What the generators made for this room: build/gen/core/base/x.cpp belongs to src/core/base.
    string(REGEX REPLACE "^src/" "${TRACEFIRE_GEN_DIR}/" generated_dir "${ARG_DIR}")
    foreach(generated IN LISTS TRACEFIRE_GENERATED_CPP)
      string(FIND "${generated}" "${generated_dir}/" at)
      if(at EQUAL 0)
        list(APPEND sources "${generated}")
      endif()
    endforeach()
  endif()
  set(heavy ${sources})
  list(FILTER heavy INCLUDE REGEX "_heavy\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_heavy\\.cpp$")

  add_library(${target} INTERFACE)
  foreach(group IN LISTS ARG_EXTERNAL)
    target_link_libraries(${target} INTERFACE tf_ext_${group})
  endforeach()
  foreach(kind sources heavy)
    if(${kind})
      set(object ${target}_${kind})
      add_library(${object} OBJECT ${${kind}})
      tracefire_compile(${object})
      target_link_libraries(${object} PRIVATE ${target})
      if(kind STREQUAL "heavy")
        set_target_properties(${object} PROPERTIES JOB_POOL_COMPILE heavy)
      endif()
      list(APPEND TRACEFIRE_ROOM_OBJECTS ${object})
      list(APPEND TRACEFIRE_OBJECTS_${target} ${object})
    endif()
  endforeach()
  set(TRACEFIRE_ROOM_OBJECTS ${TRACEFIRE_ROOM_OBJECTS} PARENT_SCOPE)
  set(TRACEFIRE_OBJECTS_${target} ${TRACEFIRE_OBJECTS_${target}} PARENT_SCOPE)
endfunction()

# tracefire_compile(target): what every target of ours is compiled with.
# Include roots: src/ ("core/graph/graph.h"), include/ ("tracefire/tensor.h"), build/gen.
function(tracefire_compile target)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include"
                                               "${PROJECT_SOURCE_DIR}/src" "${TRACEFIRE_GEN_DIR}")
  target_precompile_headers(${target} REUSE_FROM tf_pch)
  add_dependencies(${target} tracefire_generated)
endfunction()

# tracefire_link_rooms(target room...): puts the objects of these rooms into a program or library.
function(tracefire_link_rooms target)
  foreach(room IN LISTS ARGN)
    string(REPLACE "/" "_" name "room_${room}")
    foreach(object IN LISTS TRACEFIRE_OBJECTS_${name})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${object}>)
    endforeach()
    target_link_libraries(${target} PRIVATE ${name})
  endforeach()
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# The precompiled header: standard headers only, the same for every target.
set(pch_source "${PROJECT_BINARY_DIR}/pch.cpp")
file(CONFIGURE OUTPUT "${pch_source}" CONTENT "// Compiled into nothing: it carries the precompiled header.\n")
add_library(tf_pch OBJECT "${pch_source}")
set(pch_headers
  <algorithm> <array> <atomic> <chrono> <cmath> <complex> <condition_variable> <cstddef> <cstdint>
  <cstdio> <cstdlib> <cstring> <deque> <exception> <functional> <initializer_list> <limits> <map>
  <memory> <mutex> <new> <numeric> <optional> <ostream> <set> <shared_mutex> <span> <sstream>
  <stdexcept> <string> <string_view> <thread> <tuple> <type_traits> <unordered_map> <unordered_set>
  <utility> <variant> <vector>)
target_precompile_headers(tf_pch PRIVATE ${pch_headers})
# A precompiled header is not the same bytes twice. ccache hashes this description in its place
# (CCACHE_PCH_EXTSUM), so that another clone with the same compiler and flags shares its entries.
string(SHA256 pch_sum "${pch_headers} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} \
${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} ${TRACEFIRE_SANITIZE}")
foreach(kind gch pch)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/CMakeFiles/tf_pch.dir/cmake_pch.hxx.${kind}.sum"
       CONTENT "${pch_sum}\n")
endforeach()

set(rooms_file "${PROJECT_SOURCE_DIR}/scripts/lint/rooms.json")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${rooms_file}")
file(READ "${rooms_file}" rooms_json)
string(JSON room_count LENGTH "${rooms_json}" rooms)
math(EXPR room_last "${room_count} - 1")
# What the tools without the engine are made of: tools/cli and all that it uses.
set(TRACEFIRE_TOOL_ROOMS tools/cli)
set(unread ${TRACEFIRE_TOOL_ROOMS})
while(unread)
  list(POP_FRONT unread room)
  string(JSON use_count LENGTH "${rooms_json}" rooms ${room} uses)
  set(index 0)
  while(index LESS use_count)
    string(JSON used GET "${rooms_json}" rooms ${room} uses ${index})
    math(EXPR index "${index} + 1")
    if(NOT used STREQUAL "value_types" AND NOT used IN_LIST TRACEFIRE_TOOL_ROOMS)
      list(APPEND TRACEFIRE_TOOL_ROOMS ${used})
      list(APPEND unread ${used})
    endif()
  endwhile()
endwhile()
if(TRACEFIRE_TOOLS_ONLY)
  set(TRACEFIRE_ONLY_ROOMS ${TRACEFIRE_TOOL_ROOMS})
endif()
set(TRACEFIRE_ROOMS)
set(TRACEFIRE_ROOM_OBJECTS)
foreach(index RANGE ${room_last})
  string(JSON room MEMBER "${rooms_json}" rooms ${index})
  if(room STREQUAL "include" OR room STREQUAL "bindings")
    continue()  # headers only; the Python module is made in PythonModule.cmake
  endif()
  if(room STREQUAL "backends/cuda" AND NOT TRACEFIRE_CUDA)
    continue()
  endif()
  if(TRACEFIRE_ONLY_ROOMS AND NOT room IN_LIST TRACEFIRE_ONLY_ROOMS)
    continue()
  endif()
  string(JSON dir GET "${rooms_json}" rooms ${room} dir)
  set(externals)
  string(JSON external_count ERROR_VARIABLE none LENGTH "${rooms_json}" rooms ${room} external)
  if(none STREQUAL "NOTFOUND" AND external_count GREATER 0)
    math(EXPR external_last "${external_count} - 1")
    foreach(e RANGE ${external_last})
      string(JSON group GET "${rooms_json}" rooms ${room} external ${e})
      list(APPEND externals ${group})
    endforeach()
  endif()
  tracefire_room(NAME ${room} DIR ${dir} EXTERNAL ${externals})
  list(APPEND TRACEFIRE_ROOMS ${room})
endforeach()
if(TARGET room_tools_report_sources)  # manifests name the version
  target_compile_definitions(room_tools_report_sources PRIVATE "TRACEFIRE_VERSION=\"${PROJECT_VERSION}\"")
endif()

# tracefire_fuzz_entry(target source missing): the objects of a tests/fuzz/NAME.cpp. Where its line
# `// Rooms: a b` names rooms that are not built, there is no target and `missing` lists them.
function(tracefire_fuzz_entry target source missing)
  file(STRINGS "${source}" needed REGEX "^// Rooms: " LIMIT_COUNT 1)
  string(REPLACE "// Rooms: " "" needed "${needed}")
  separate_arguments(needed)
  list(REMOVE_ITEM needed ${TRACEFIRE_ROOMS})
  set(${missing} "${needed}" PARENT_SCOPE)
  if(NOT needed)
    add_library(${target} OBJECT "${source}")
    tracefire_compile(${target})
    target_link_libraries(${target} PRIVATE tf_ext_json tf_ext_cuda)
  endif()
endfunction()
