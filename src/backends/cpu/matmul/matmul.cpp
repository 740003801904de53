// SPDX-License-Identifier: Apache-2.0
// Matrix products. C is cut into blocks by sizes alone, each block is one single-threaded product,
// and the pool shares the blocks out: the same bits for any number of threads.

#include <algorithm>
#include <vector>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/matmul/gemm.h"

namespace tracefire::cpu {
namespace {

/// Operations of a block that are worth a hand-over to another thread.
constexpr int64_t kLeastBlock = 1 << 20;
constexpr int64_t kGrain = 32 * 1024;

struct Blocks {
  int64_t rows, columns;
  int64_t count(int64_t m, int64_t n) const {
    return (m + rows - 1) / rows * ((n + columns - 1) / columns);
  }
};

/// Half of a side, in whole vectors.
int64_t half(int64_t side) { return (side / 2 + 15) / 16 * 16; }

/// Few rows: all of them in one block, so that B is read once.
Blocks choose_columns(int64_t m, int64_t n) {
  // A row or two is a walk over B, best along long stretches of its rows.
  const int64_t columns = m < 16 ? 1024 : 256;
  return {m, n >= 512 ? columns : n};
}

/// Large blocks, near to squares: a product of r rows and c columns packs c / (r + c) of its
/// operands for nothing when its neighbours do the same. They shrink only until there are
/// enough for many threads.
Blocks choose_squares(int64_t m, int64_t n, int64_t matrices) {
  constexpr int64_t kLargest = 1024, kEnough = 16, kScarce = 8;
  Blocks blocks{std::min(m, kLargest), std::min(n, kLargest)};
  while (matrices * blocks.count(m, n) < kEnough) {
    if (blocks.rows >= blocks.columns && blocks.rows > 128) {
      blocks.rows = half(blocks.rows);
    } else if (blocks.columns > 256) {
      blocks.columns = half(blocks.columns);
    } else if (blocks.rows > 128) {
      blocks.rows = half(blocks.rows);
    } else {
      break;
    }
  }
  if (matrices * blocks.count(m, n) < kScarce && blocks.rows > 64) blocks.rows = 64;
  return blocks;
}

/// By sizes alone, so that a result has the same bits on any number of threads.
Blocks choose_blocks(int64_t m, int64_t n, int64_t k, int64_t matrices) {
  Blocks blocks = m < 128 ? choose_columns(m, n) : choose_squares(m, n, matrices);
  const auto work = [&] { return 2 * blocks.rows * blocks.columns * k; };
  while (blocks.rows < m && work() < kLeastBlock) blocks.rows *= 2;
  while (blocks.columns < n && work() < kLeastBlock) blocks.columns *= 2;
  return {std::min(blocks.rows, m), std::min(blocks.columns, n)};
}

/// Sizes and strides of a batched product, as the node describes it.
struct Problem {
  int64_t m, n, k, batch;
  int64_t a_row, a_column, b_row, b_column;  // elements
  std::vector<int64_t> a_matrix, b_matrix;   // per batch index: start of its matrix
};

Problem problem_of(const NodeView& node) {
  const std::vector<int64_t> a = sizes_of(node.inputs[0]), b = sizes_of(node.inputs[1]);
  const std::vector<int64_t> c = sizes_of(node.outputs[0]);
  const bool ta = node.node->attrs.flag("transpose_a"), tb = node.node->attrs.flag("transpose_b");
  const int64_t a_last = a[a.size() - 1], b_last = b[b.size() - 1];
  Problem p;
  p.m = c[c.size() - 2];
  p.n = c[c.size() - 1];
  p.k = a[a.size() - (ta ? 2 : 1)];
  p.a_row = ta ? 1 : a_last;
  p.a_column = ta ? a_last : 1;
  p.b_row = tb ? 1 : b_last;
  p.b_column = tb ? b_last : 1;
  p.batch = product(c, 0, c.size() - 2);
  // Start of the matrix of batch index `at`, an operand's missing or unit axes repeated.
  const auto start = [&c](const std::vector<int64_t>& sizes, int64_t at) {
    int64_t offset = 0, stride = sizes[sizes.size() - 1] * sizes[sizes.size() - 2];
    for (size_t axis = c.size() - 2, own = sizes.size() - 2; axis-- > 0;) {
      const int64_t index = at % c[axis];
      at /= c[axis];
      if (own == 0) continue;
      --own;
      if (sizes[own] != 1) offset += index * stride;
      stride *= sizes[own];
    }
    return offset;
  };
  for (int64_t i = 0; i < p.batch; ++i) {
    p.a_matrix.push_back(start(a, i));
    p.b_matrix.push_back(start(b, i));
  }
  return p;
}

using MakeGemm = std::shared_ptr<const Gemm> (*)(const GemmTypes& types, const GemmShape& shape);

/// The product of a problem: one Gemm for each of at most four sizes of blocks.
class BlockedProduct {
 public:
  /// False where `make_gemm` has no product of these types.
  bool make(const GemmTypes& types, const Problem& p, MakeGemm make_gemm) {
    problem_ = p;
    a_size_ = static_cast<int64_t>(dtype_size(types.a));
    b_size_ = static_cast<int64_t>(dtype_size(types.b));
    c_size_ = static_cast<int64_t>(dtype_size(types.c));
    blocks_ = choose_blocks(p.m, p.n, p.k, p.batch);
    row_blocks_ = (p.m + blocks_.rows - 1) / blocks_.rows;
    column_blocks_ = (p.n + blocks_.columns - 1) / blocks_.columns;
    for (int edge = 0; edge < 4; ++edge) {
      const int64_t rows = edge & 1 ? p.m - (row_blocks_ - 1) * blocks_.rows : blocks_.rows;
      const int64_t columns =
          edge & 2 ? p.n - (column_blocks_ - 1) * blocks_.columns : blocks_.columns;
      const GemmShape shape{rows, columns, p.k, p.a_row, p.a_column, p.b_row, p.b_column, p.n};
      gemms_[edge] = make_gemm(types, shape);
      if (!gemms_[edge]) return false;
    }
    return true;
  }
  std::string name() const { return gemms_[0]->name(); }

  void run(const void* a, const void* b, void* c) const {
    const int64_t per_matrix = row_blocks_ * column_blocks_;
    const int64_t work = 2 * blocks_.rows * blocks_.columns * problem_.k;
    const int64_t grain = std::max<int64_t>(1, kLeastBlock / std::max<int64_t>(1, work));
    parallel_for(problem_.batch * per_matrix, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        run_block(a, b, c, task / per_matrix, task % per_matrix);
      }
    });
  }

 private:
  void run_block(const void* a, const void* b, void* c, int64_t matrix, int64_t block) const {
    const Problem& p = problem_;
    // Neighbouring tasks share columns of B.
    const int64_t row = block % row_blocks_, column = block / row_blocks_;
    const int edge = (row == row_blocks_ - 1 ? 1 : 0) | (column == column_blocks_ - 1 ? 2 : 0);
    const int64_t i = row * blocks_.rows, j = column * blocks_.columns;
    const size_t at = static_cast<size_t>(matrix);
    const int64_t from_a = p.a_matrix[at] + i * p.a_row;
    const int64_t from_b = p.b_matrix[at] + j * p.b_column;
    const int64_t to = (matrix * p.m + i) * p.n + j;
    gemms_[edge]->run(static_cast<const char*>(a) + from_a * a_size_,
                      static_cast<const char*>(b) + from_b * b_size_,
                      static_cast<char*>(c) + to * c_size_);
  }

  Problem problem_;
  int64_t a_size_ = 4, b_size_ = 4, c_size_ = 4;
  Blocks blocks_{1, 1};
  int64_t row_blocks_ = 1, column_blocks_ = 1;
  std::shared_ptr<const Gemm> gemms_[4];
};

std::shared_ptr<const Gemm> onednn(const GemmTypes& types, const GemmShape& shape) {
  std::string refusal;
  return make_onednn_gemm(types, shape, &refusal);
}
std::shared_ptr<const Gemm> own(const GemmTypes& types, const GemmShape& shape) {
  return make_own_gemm(types.c, shape);
}
/// f32 products by the best way of this build.
std::shared_ptr<const Gemm> best_f32(const GemmTypes& types, const GemmShape& shape) {
  std::shared_ptr<const Gemm> gemm = onednn(types, shape);
  return gemm ? gemm : own(types, shape);
}

/// All three of one type.
GemmTypes all_of(DType dtype) { return {dtype, dtype, dtype}; }

void convert(TileFn fn, void* target, size_t target_size, const void* source, size_t source_size,
             int64_t n) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    fn(static_cast<char*>(target) + static_cast<size_t>(begin) * target_size,
       static_cast<const char*>(source) + static_cast<size_t>(begin) * source_size, nullptr,
       nullptr, end - begin);
  });
}

/// Products of narrow types in f32: both operands are widened, the result is rounded once.
BoundLaunch bind_widened(const NodeView& node, const Problem& problem) {
  const DType dtype = node.inputs[0].dtype;
  BlockedProduct product;
  if (!product.make(all_of(DType::kF32), problem, best_f32)) {
    return error(ErrorCode::kInternal, "no f32 product of ", node.inputs[0].str(), " and ",
                 node.inputs[1].str(), "; please report it.");
  }
  const int64_t a_count = elements_of(node.inputs[0]), b_count = elements_of(node.inputs[1]);
  const int64_t c_count = elements_of(node.outputs[0]);
  const TileFn load = tile_table().loads[static_cast<size_t>(dtype)];
  const TileFn store = tile_table().stores[static_cast<size_t>(dtype)];
  const size_t size = dtype_size(dtype);
  const size_t workspace = static_cast<size_t>(a_count + b_count + c_count) * sizeof(float);
  const std::string name = product.name();
  const auto run = [=](const LaunchArgs& args) -> Status {
    float* a = static_cast<float*>(args.workspace);
    float *b = a + a_count, *c = b + b_count;
    convert(load, a, sizeof(float), args.inputs[0], size, a_count);
    convert(load, b, sizeof(float), args.inputs[1], size, b_count);
    product.run(a, b, c);
    convert(store, args.outputs[0], size, c, sizeof(float), c_count);
    return {};
  };
  return make_launch(name, run, workspace);
}

/// Zeros for a product over nothing; null where there is something to multiply.
std::unique_ptr<Launch> bind_zeros(const NodeView& node, const Problem& problem) {
  const int64_t results = problem.batch * problem.m * problem.n;
  if (results != 0 && problem.k != 0) return nullptr;
  const size_t bytes = static_cast<size_t>(results) * dtype_size(node.outputs[0].dtype);
  return make_launch("cpu_fill_zero", [bytes](const LaunchArgs& args) -> Status {
    if (bytes != 0) std::fill_n(static_cast<char*>(args.outputs[0]), bytes, char{0});
    return {};
  });
}

BoundLaunch launch_of(BlockedProduct product) {
  const std::string name = product.name();
  return make_launch(name, [product = std::move(product)](const LaunchArgs& args) -> Status {
    product.run(args.inputs[0], args.inputs[1], args.outputs[0]);
    return {};
  });
}

BoundLaunch bind_matmul(const NodeView& node, MakeGemm make_gemm) {
  const Problem problem = problem_of(node);
  if (auto zeros = bind_zeros(node, problem)) return zeros;
  BlockedProduct product;
  if (!product.make(all_of(node.inputs[0].dtype), problem, make_gemm)) {
    return bind_widened(node, problem);
  }
  return launch_of(std::move(product));
}

/// Products of 8-bit integers where oneDNN has none: of int32, after both operands are widened.
BoundLaunch bind_int_widened(const NodeView& node) {
  const Problem problem = problem_of(node);
  if (auto zeros = bind_zeros(node, problem)) return zeros;
  BlockedProduct product;
  product.make(all_of(DType::kI32), problem, own);
  const int64_t a_count = elements_of(node.inputs[0]), b_count = elements_of(node.inputs[1]);
  const auto widen = [](DType dtype) {
    RegType type;
    reg_type(dtype, &type);
    return tile_table().casts[static_cast<size_t>(type)][static_cast<size_t>(DType::kI32)];
  };
  const TileFn widen_a = widen(node.inputs[0].dtype), widen_b = widen(node.inputs[1].dtype);
  const auto run = [=](const LaunchArgs& args) -> Status {
    int32_t *a = static_cast<int32_t*>(args.workspace), *b = a + a_count;
    convert(widen_a, a, sizeof(int32_t), args.inputs[0], 1, a_count);
    convert(widen_b, b, sizeof(int32_t), args.inputs[1], 1, b_count);
    product.run(a, b, args.outputs[0]);
    return {};
  };
  return make_launch(product.name(), run, static_cast<size_t>(a_count + b_count) * sizeof(int32_t));
}

BoundLaunch bind_int_onednn(const NodeView& node) {
  const Problem problem = problem_of(node);
  if (auto zeros = bind_zeros(node, problem)) return zeros;
  BlockedProduct product;
  const GemmTypes types{node.inputs[0].dtype, node.inputs[1].dtype, DType::kI32};
  if (!product.make(types, problem, onednn)) return bind_int_widened(node);
  return launch_of(std::move(product));
}

Answer accept_int_onednn(const NodeView& node) {
  if (!has_exact_int8())
    return Answer::no("oneDNN: products of int8 are exact with AVX512-VNNI only");
  if (node.inputs[1].dtype == DType::kI8) return Answer::yes();
  return Answer::no(
      concat_text("oneDNN: b is ", dtype_name(node.inputs[1].dtype), ", it must be int8"));
}

Answer accept_onednn(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  if (dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16) return Answer::yes();
  return Answer::no(concat_text("oneDNN has no products of ", dtype_name(dtype)));
}
Answer accept_own(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  if (dtype != DType::kI4 && dtype != DType::kU4) return Answer::yes();
  return Answer::no(concat_text("no products of ", dtype_name(dtype), "; cast to int8 first"));
}
BoundLaunch bind_onednn(const NodeView& node) { return bind_matmul(node, onednn); }
BoundLaunch bind_own(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  // Narrow floating types are not computed in themselves.
  const bool wide = !is_floating(dtype) || dtype == DType::kF32 || dtype == DType::kF64;
  return bind_matmul(
      node, wide ? own : [](const GemmTypes&, const GemmShape&) {
        return std::shared_ptr<const Gemm>();
      });
}

}  // namespace

std::vector<KernelSpec> matmul_kernels() {
  std::vector<KernelSpec> specs;
  if (has_onednn()) {
    specs.push_back({"matmul", "onednn_matmul", accept_onednn, bind_onednn, false, "oneDNN 3.2"});
  }
  specs.push_back({"matmul", "cpu_matmul", accept_own, bind_own});
  if (has_onednn()) {
    specs.push_back({"int_matmul", "onednn_int_matmul", accept_int_onednn, bind_int_onednn, false,
                     "oneDNN 3.2"});
  }
  specs.push_back({"int_matmul", "cpu_int_matmul", accept_any, bind_int_widened});
  return specs;
}

}  // namespace tracefire::cpu
