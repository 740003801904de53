# SPDX-License-Identifier: Apache-2.0
# The loops that compilers turn into vector code: full optimisation whatever the build type is, and
# without the rules about errno and traps that keep selections from becoming blends. The
# instruction set is chosen inside the files (isa_target.h). They include no precompiled header,
# which other flags would not fit.
file(GLOB vector_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/backends/cpu/tile/*.cpp"
                                           "${PROJECT_SOURCE_DIR}/src/backends/cpu/reduce/reduce_*.cpp"
                                           "${PROJECT_SOURCE_DIR}/src/backends/cpu/matmul/gemm_loops_*.cpp"
                                           "${PROJECT_SOURCE_DIR}/src/backends/cpu/move/scatter.cpp"
                                           "${PROJECT_SOURCE_DIR}/src/backends/cpu/move/strided_copy.cpp"
                                           "${PROJECT_SOURCE_DIR}/src/backends/cpu/vector/*.cpp")
set(vector_flags -fno-math-errno -fno-trapping-math)
if(NOT TRACEFIRE_SANITIZE)
  list(APPEND vector_flags -O3)
endif()
set_source_files_properties(${vector_sources} PROPERTIES COMPILE_OPTIONS "${vector_flags}"
                                                         SKIP_PRECOMPILE_HEADERS ON)
