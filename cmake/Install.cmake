# SPDX-License-Identifier: Apache-2.0
# `cmake --install build --prefix DIR`: headers, library, programs. The Python wheel installs only
# the component 'python' (see scripts/make_wheel).
include(GNUInstallDirs)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tracefire" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT cpp)
configure_file("${PROJECT_SOURCE_DIR}/cmake/version.h.in" "${TRACEFIRE_GEN_DIR}/tracefire/version.h" @ONLY)
install(FILES "${TRACEFIRE_GEN_DIR}/tracefire/ops.h" "${TRACEFIRE_GEN_DIR}/tracefire/version.h"
              "${TRACEFIRE_GEN_DIR}/error_codes.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tracefire" COMPONENT cpp)
# What programs include has one name, whether they are built against the build or the installation.
file(WRITE "${TRACEFIRE_GEN_DIR}/tracefire/error_codes.h" "#include \"../error_codes.h\"\n")
install(TARGETS tracefire EXPORT Tracefire COMPONENT cpp)
install(TARGETS ${TRACEFIRE_PROGRAMS} COMPONENT cpp)
# What `prove` loads into other programs; it is looked for beside the library and the programs.
install(TARGETS tracefire_inject LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp)

# find_package(Tracefire), for CMake: in an installation, and in the build with -DTracefire_DIR=build.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Tracefire")
install(EXPORT Tracefire NAMESPACE Tracefire:: DESTINATION "${package_dir}" FILE TracefireTargets.cmake COMPONENT cpp)
export(EXPORT Tracefire NAMESPACE Tracefire:: FILE "${PROJECT_BINARY_DIR}/TracefireTargets.cmake")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/TracefireConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/TracefireConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TracefireConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TracefireConfig.cmake" "${PROJECT_BINARY_DIR}/TracefireConfigVersion.cmake"
        DESTINATION "${package_dir}" COMPONENT cpp)

# pkg-config tracefire, for everything else. Paths are relative: the installation may be moved.
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH pkgconfig_to_prefix "/${pkgconfig_dir}" "/")
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/tracefire.pc.in" "${PROJECT_BINARY_DIR}/tracefire.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tracefire.pc" DESTINATION "${pkgconfig_dir}" COMPONENT cpp)

# The licence of the digits that are embedded in the library.
install(FILES "${PROJECT_SOURCE_DIR}/data/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        RENAME data.md COMPONENT cpp)
# And those of the libraries that are compiled in or lie beside it.
tracefire_install_licences("${CMAKE_INSTALL_DOCDIR}/licences" cpp)
# Manual pages and completions, where man and the shells look for them.
if(TARGET tracefire_manual)
  install(DIRECTORY "${TRACEFIRE_SHARE_DIR}/" DESTINATION "${CMAKE_INSTALL_DATADIR}" COMPONENT cpp)
endif()
if(TRACEFIRE_ONEDNN)
  install(FILES "${TRACEFIRE_DEPS_DIR}/onednn/lib/libdnnl.so.3" DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          COMPONENT cpp)
endif()
