// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/tile/isa_target.h"

namespace tracefire::cpu {
namespace {

GemmTable make_table() {
  GemmTable table;
  fill_gemm_baseline(&table);
#if TF_X86_64
  if (best_isa() >= Isa::kAvx2) fill_gemm_avx2(&table);
  if (best_isa() >= Isa::kAvx512) fill_gemm_avx512(&table);
#endif
  return table;
}

class OwnGemm final : public Gemm {
 public:
  OwnGemm(GemmFn fn, const GemmShape& shape) : fn_(fn), shape_(shape) {}
  void run(const void* a, const void* b, void* c) const override { fn_(shape_, a, b, c); }
  std::string name() const override { return "cpu_gemm"; }

 private:
  GemmFn fn_;
  GemmShape shape_;
};

}  // namespace

void* packing_buffer(size_t bytes) {
  constexpr size_t kLine = 64;
  thread_local std::vector<char> memory;
  if (memory.size() < bytes + kLine) memory.resize(bytes + kLine);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (kLine - address % kLine) % kLine;
}

std::shared_ptr<const Gemm> make_own_gemm(DType dtype, const GemmShape& shape) {
  static const GemmTable table = make_table();
  RegType type;
  if (!reg_type(dtype, &type)) return nullptr;
  const GemmFn fn = table.functions[static_cast<size_t>(type)];
  return fn ? std::make_shared<OwnGemm>(fn, shape) : nullptr;
}

}  // namespace tracefire::cpu
