# SPDX-License-Identifier: Apache-2.0
# libtracefire.so: what the Python module, the command line and users link to.

# For a wheel: the C++ library is linked in and hidden, so that it does not matter which is installed.
# libgcc_s stays shared: exceptions that pass from one library to another abort with two unwinders.
option(TRACEFIRE_STATIC_RUNTIME "Link libstdc++ statically into libtracefire.so and the Python module" OFF)
set(static_runtime -static-libstdc++ LINKER:--exclude-libs,ALL)

# libtracefire.so: every room. The Python module, the command line and users link to it.
add_library(tracefire SHARED "${pch_source}")
tracefire_link_rooms(tracefire ${TRACEFIRE_ROOMS})
target_include_directories(tracefire INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${TRACEFIRE_GEN_DIR}>
  $<INSTALL_INTERFACE:include>)
target_compile_features(tracefire INTERFACE cxx_std_20)
target_link_options(tracefire PRIVATE ${no_undefined}
                    "LINKER:--version-script,${PROJECT_SOURCE_DIR}/cmake/exports.map")
set_target_properties(tracefire PROPERTIES LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/exports.map")
if(TRACEFIRE_STATIC_RUNTIME)
  target_link_options(tracefire PRIVATE ${static_runtime})
endif()
# Before 1.0 every minor version may change the C++ interface.
set_target_properties(tracefire PROPERTIES VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
add_library(Tracefire::tracefire ALIAS tracefire)
