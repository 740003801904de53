# SPDX-License-Identifier: Apache-2.0
# `cmake --install build --prefix DIR`: headers, library, programs. The Python wheel installs only
# the component 'python' (see scripts/make_wheel).
include(GNUInstallDirs)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tracefire" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT cpp)
install(FILES "${TRACEFIRE_GEN_DIR}/tracefire/ops.h" "${TRACEFIRE_GEN_DIR}/error_codes.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tracefire" COMPONENT cpp)
install(TARGETS tracefire ${TRACEFIRE_PROGRAMS} EXPORT tracefire COMPONENT cpp)
# What `prove` loads into other programs; it is looked for beside the library and the programs.
install(TARGETS tracefire_inject LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp)
install(EXPORT tracefire NAMESPACE tracefire:: DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/tracefire"
        FILE tracefire-config.cmake COMPONENT cpp)
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
