# SPDX-License-Identifier: Apache-2.0
# tracefire._core, made with nanobind from python/bindings. With Python 3.12 or newer it uses the
# stable ABI, so that one file serves every later version.

file(GLOB binding_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/bindings/*.cpp")
if(NOT binding_sources)
  return()
endif()
# scripts/setup makes .venv; its Python is preferred.
if(NOT Python_EXECUTABLE AND EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python")
  set(Python_EXECUTABLE "${PROJECT_SOURCE_DIR}/.venv/bin/python")
endif()
find_package(Python 3.11 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
if(NOT Python_FOUND)
  message(STATUS "Python module: left out, no Python >= 3.11 with headers was found (scripts/setup looks for one)")
  return()
endif()
# CMake before 3.26 does not know the component SABIModule, whose headers are the same files.
if(Python_VERSION VERSION_GREATER_EQUAL 3.12 AND NOT TARGET Python::SABIModule)
  add_library(Python::SABIModule INTERFACE IMPORTED)
  set_target_properties(Python::SABIModule PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${Python_INCLUDE_DIRS}")
endif()
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_package(nanobind CONFIG QUIET)
if(NOT nanobind_FOUND)
  message(STATUS "Python module: left out, ${Python_EXECUTABLE} has no nanobind (scripts/setup installs it)")
  return()
endif()

set(TRACEFIRE_PYTHON_DIR "${PROJECT_BINARY_DIR}/python")
nanobind_add_module(tracefire_python STABLE_ABI NB_STATIC ${binding_sources})
target_include_directories(tracefire_python PRIVATE "${PROJECT_SOURCE_DIR}" "${TRACEFIRE_GEN_DIR}")
target_compile_definitions(tracefire_python PRIVATE TRACEFIRE_VERSION="${PROJECT_VERSION}")
target_link_libraries(tracefire_python PRIVATE tracefire)
add_dependencies(tracefire_python tracefire_generated)
set_target_properties(tracefire_python PROPERTIES
  OUTPUT_NAME _core
  LIBRARY_OUTPUT_DIRECTORY "${TRACEFIRE_PYTHON_DIR}/tracefire"
  INSTALL_RPATH "$<IF:$<BOOL:${SKBUILD}>,$ORIGIN,$ORIGIN/../../lib>"
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/python/bindings/_core.pyi.in;${PROJECT_SOURCE_DIR}/scripts/generate_stubs.py"
  JOB_POOL_COMPILE heavy)

# build/python is what tests put on PYTHONPATH: the packages of python/, and the module in its place.
add_custom_target(tracefire_python_packages ALL
  COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/link_packages.py"
          "${PROJECT_SOURCE_DIR}/python" "${TRACEFIRE_PYTHON_DIR}"
  COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${TRACEFIRE_GEN_DIR}/_build.py"
          "${TRACEFIRE_PYTHON_DIR}/tracefire/_build.py"
  COMMAND "${CMAKE_COMMAND}" -E env  # a wheel's module looks for its libraries beside itself
          "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:tracefire>:${TRACEFIRE_DEPS_DIR}/onednn/lib"
          "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/generate_stubs.py"
          "$<TARGET_FILE:tracefire_python>" "${PROJECT_SOURCE_DIR}/python/bindings/_core.pyi.in"
          "${TRACEFIRE_PYTHON_DIR}/tracefire/_core.pyi"
  COMMENT "" VERBATIM)
add_dependencies(tracefire_python_packages tracefire_build_info)

# The name and version under which pip, importlib.metadata and `tracefire doctor` know what is built here.
if(NOT SKBUILD)
  file(GLOB stale "${TRACEFIRE_PYTHON_DIR}/tracefire-*.dist-info")
  list(REMOVE_ITEM stale "${TRACEFIRE_PYTHON_DIR}/tracefire-${PROJECT_VERSION}.dist-info")
  if(stale)
    file(REMOVE_RECURSE ${stale})
  endif()
  file(WRITE "${TRACEFIRE_PYTHON_DIR}/tracefire-${PROJECT_VERSION}.dist-info/METADATA"
       "Metadata-Version: 2.1\nName: tracefire\nVersion: ${PROJECT_VERSION}\n")
endif()

# What the wheel holds beside the packages of python/ (pyproject.toml): the module with its libraries
# in the package tracefire, and tracefire.pth at the top of site-packages.
if(TRACEFIRE_STATIC_RUNTIME)
  target_link_options(tracefire_python PRIVATE ${static_runtime})
endif()
install(TARGETS tracefire_python LIBRARY DESTINATION tracefire COMPONENT python)
install(TARGETS tracefire_inject LIBRARY DESTINATION tracefire COMPONENT python)
# The program lies in the package; `tracefire_program` is what pip's command of that name calls.
install(PROGRAMS "$<TARGET_FILE:tracefire_program>" RENAME tracefire DESTINATION tracefire/bin COMPONENT python)
install(FILES "${PROJECT_SOURCE_DIR}/python/tracefire_program.py" "${PROJECT_SOURCE_DIR}/python/tracefire_keras.py"
        DESTINATION . COMPONENT python)
# The file itself under the name it is looked for: wheels hold no links.
install(FILES "$<TARGET_FILE:tracefire>" RENAME "$<TARGET_SONAME_FILE_NAME:tracefire>"
        DESTINATION tracefire COMPONENT python)
if(TRACEFIRE_ONEDNN)
  install(FILES "${TRACEFIRE_DEPS_DIR}/onednn/lib/libdnnl.so.3" DESTINATION tracefire COMPONENT python)
endif()
# The licences of what the wheel holds, the embedded digits and libgomp among it.
tracefire_install_licences(tracefire/licences python)
install(FILES "${PROJECT_SOURCE_DIR}/data/README.md" DESTINATION tracefire/licences RENAME digits.md
        COMPONENT python)
if(EXISTS /usr/share/doc/libgomp1/copyright)
  install(FILES /usr/share/doc/libgomp1/copyright DESTINATION tracefire/licences RENAME libgomp1.txt
          COMPONENT python)
endif()
file(GLOB nanobind_licence "${nanobind_ROOT}/../../nanobind-*.dist-info/licenses/LICENSE")
if(nanobind_licence)
  install(FILES ${nanobind_licence} DESTINATION tracefire/licences RENAME nanobind.txt COMPONENT python)
endif()
install(FILES "${TRACEFIRE_GEN_DIR}/_build.py" DESTINATION tracefire COMPONENT python)
install(FILES "${TRACEFIRE_PYTHON_DIR}/tracefire/_core.pyi" DESTINATION tracefire COMPONENT python)
install(FILES "${PROJECT_SOURCE_DIR}/python/tracefire.pth" DESTINATION . COMPONENT python)
