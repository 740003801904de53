# SPDX-License-Identifier: Apache-2.0
# examples/NAME.cpp becomes build/examples/NAME, made as a user would: from the installed headers and
# libtracefire.so alone. tests/nn/test_examples.py runs them.
file(GLOB example_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
add_custom_target(examples)
foreach(source IN LISTS example_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(example_${name} "${source}")
  target_link_libraries(example_${name} PRIVATE tracefire)
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME "${name}"
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples"
    BUILD_RPATH "${PROJECT_BINARY_DIR}/lib" BUILD_WITH_INSTALL_RPATH OFF)
  add_dependencies(example_${name} tracefire_ops_header)
  add_dependencies(examples example_${name})
endforeach()
