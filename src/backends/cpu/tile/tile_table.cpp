// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tile/tile_table.h"

#include "backends/cpu/tile/isa_target.h"

#if TF_X86_64
#include <cpuid.h>
#endif

namespace tracefire::cpu {
namespace {

#if TF_X86_64
// Conversions of half floats. Clang 14's __builtin_cpu_supports does not know them.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

Isa find_isa() {
#if TF_X86_64
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return Isa::kAvx512;
  }
  if (avx2) return Isa::kAvx2;
#endif
  return Isa::kBaseline;
}

TileTable make_table(Isa isa) {
  TileTable table;
  fill_real_baseline(&table);
  fill_int_baseline(&table);
  fill_casts_baseline(&table);
  fill_random_baseline(&table);
  fill_libm(&table);
#if TF_X86_64
  if (isa >= Isa::kAvx2) {
    fill_real_avx2(&table);
    fill_int_avx2(&table);
    fill_casts_avx2(&table);
    fill_random_avx2(&table);
  }
  if (isa >= Isa::kAvx512) fill_real_avx512(&table);
#else
  (void)isa;
#endif
  return table;
}

}  // namespace

Isa best_isa() {
  static const Isa isa = find_isa();
  return isa;
}

const TileTable* tile_table(Isa isa) {
  if (isa > best_isa()) return nullptr;
  static const TileTable baseline = make_table(Isa::kBaseline);
  static const TileTable avx2 = make_table(Isa::kAvx2);
  static const TileTable avx512 = make_table(Isa::kAvx512);
  return isa == Isa::kAvx512 ? &avx512 : isa == Isa::kAvx2 ? &avx2 : &baseline;
}

const TileTable& tile_table() {
  static const TileTable& table = *tile_table(best_isa());
  return table;
}

bool reg_type(DType dtype, RegType* type) {
  switch (dtype) {
    case DType::kBool: *type = RegType::kBool; return true;
    case DType::kI4:
    case DType::kI8: *type = RegType::kI8; return true;
    case DType::kI16: *type = RegType::kI16; return true;
    case DType::kI32: *type = RegType::kI32; return true;
    case DType::kI64: *type = RegType::kI64; return true;
    case DType::kU4:
    case DType::kU8: *type = RegType::kU8; return true;
    case DType::kU16: *type = RegType::kU16; return true;
    case DType::kU32: *type = RegType::kU32; return true;
    case DType::kU64: *type = RegType::kU64; return true;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32: *type = RegType::kF32; return true;
    case DType::kF64: *type = RegType::kF64; return true;
    case DType::kC64: *type = RegType::kC64; return true;
    case DType::kC128: *type = RegType::kC128; return true;
    case DType::kInvalid:
    case DType::kString:
    case DType::kToken: return false;
  }
  return false;
}

}  // namespace tracefire::cpu
