// SPDX-License-Identifier: Apache-2.0
// The random family: pure functions of a key, number i depends on (key, i) alone.

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

Status check_random(const Types& inputs, const Node& node) {
  const bool is_key = inputs[0].dtype == DType::kU32 && inputs[0].shape == Shape{2};
  if (!is_key) {
    return error(ErrorCode::kShapeMismatch, "the key is ", inputs[0].str(),
                 "; it must be uint32(2,), two words.");
  }
  if (inputs.size() > 1) {
    TF_RETURN_IF_ERROR(need_type(inputs, 1, kInteger));
    TF_RETURN_IF_ERROR(need_rank(inputs, 1, 0, "offset"));
  }
  const std::string& algorithm = node.attrs.text("algorithm");
  if (algorithm != "threefry2x32" && algorithm != "philox4x32") {
    return error(ErrorCode::kBadAttribute, "attribute 'algorithm' is '", algorithm,
                 "'; it must be 'threefry2x32' or 'philox4x32'.");
  }
  for (Dim dim : node.attrs.shape("shape")) {
    if (dim.is_constant() && dim.value() < 0) {
      return error(ErrorCode::kBadAttribute, "attribute 'shape' is ",
                   node.attrs.shape("shape").str(), "; its sizes must be 0 or more.");
    }
  }
  return {};
}

Status infer_random_bits(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(check_random(inputs, *node));
  const DType dtype = node->attrs.dtype("dtype");
  if (!is_integer(dtype) || is_signed_integer(dtype) || dtype == DType::kU4) {
    return error(ErrorCode::kBadAttribute, "attribute 'dtype' is ", dtype_name(dtype),
                 "; it must be uint8, uint16, uint32 or uint64.");
  }
  set_output(node, dtype, node->attrs.shape("shape"));
  return {};
}

/// How many random bits a uniform number takes, and its mantissa.
struct FloatForm {
  DType dtype;
  DType random;  ///< bits drawn
  DType word;    ///< as wide as dtype
  int mantissa;
  double one;  ///< bits of 1.0 in dtype
};

const FloatForm* float_form(DType dtype) {
  static constexpr FloatForm kForms[] = {
      {DType::kF64, DType::kU64, DType::kU64, 52, 4607182418800017408.0},  // 0x3ff0 << 48
      {DType::kF32, DType::kU32, DType::kU32, 23, 1065353216.0},           // 0x3f80 << 16
      {DType::kF16, DType::kU16, DType::kU16, 10, 15360.0},                // 0x3c00
      {DType::kBF16, DType::kU8, DType::kU16, 7, 16256.0}};                // 0x3f80
  for (const FloatForm& form : kForms) {
    if (form.dtype == dtype) return &form;
  }
  return nullptr;
}

Status infer_random_uniform(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(check_random(inputs, *node));
  const DType dtype = node->attrs.dtype("dtype");
  if (!float_form(dtype)) {
    return error(ErrorCode::kBadAttribute, "attribute 'dtype' is ", dtype_name(dtype),
                 "; it must be float64, float32, float16 or bfloat16.");
  }
  set_output(node, dtype, node->attrs.shape("shape"));
  return {};
}

/// The top bits become the mantissa of a number from 1 to 2; then 1 is taken away.
std::vector<Value> decompose_uniform(Builder& b, const Node& node,
                                     const std::vector<Value>& inputs) {
  Math m(b);
  const FloatForm& form = *float_form(node.attrs.dtype("dtype"));
  const Value drawn = m.op("random_bits", inputs,
                           {{"shape", node.attrs.shape("shape")},
                            {"dtype", form.random},
                            {"algorithm", node.attrs.text("algorithm")}});
  const Value word = m.cast(drawn, form.word);
  const double spare = 8.0 * static_cast<double>(dtype_size(form.random)) - form.mantissa;
  const Value mantissa = m.op("shift_right", {word, m.scalar(spare, word)});
  const Value bits = m.op("bitwise_or", {mantissa, m.scalar(form.one, word)});
  return {m.shift(m.op("bitcast", {bits}, {{"dtype", form.dtype}}), -1)};
}

Cost random_cost(const Node& node, const Types& inputs) {
  return {60 * type_elements(node.outputs[0]), traffic(node, inputs)};
}

OpRow random_row(const char* name, const char* tf_name, DType dtype, InferFn infer,
                 const char* doc) {
  OpRow row = make_row(OpClass::kRandom, name, tf_name, {"key", "offset"},
                       {{"shape", AttrType::kShape, std::nullopt, "sizes of the result"},
                        {"dtype", AttrType::kDType, dtype, "element type of the result"},
                        {"algorithm", AttrType::kText, std::string("threefry2x32"),
                         "'threefry2x32' or 'philox4x32'"}},
                       infer, no_gradient("random numbers depend on a whole-number key only"),
                       random_cost, doc);
  row.arity = {1, 2};
  return row;
}

}  // namespace

std::vector<OpRow> random_rows() {
  std::vector<OpRow> rows;
  rows.push_back(random_row(
      "random_bits", "StatelessRandomUniformFullIntV2", DType::kU32, infer_random_bits,
      "Random words. Element number i (row-major, plus the whole-number scalar `offset` where "
      "given) depends on key [2] and i alone. threefry2x32: with (x0, x1) = the 20 rounds of "
      "Threefry-2x32 on the counter (i >> 32, i & 0xffffffff), a word is x0 ^ x1, and 64 bits are "
      "x0 << 32 | x1. philox4x32: Philox-4x32-10 on the counter (block & 0xffffffff, block >> 32, "
      "0, 0); a word is number i % 4 of block i / 4, and 64 bits are word 2 (i % 2) + 1 of block "
      "i / 2, shifted up by 32, with word 2 (i % 2) below. 8 and 16 bits are the low ones of a "
      "word. After Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3 "
      "(2011)."));
  rows.push_back(random_row(
      "random_uniform", "StatelessRandomUniformV2", DType::kF32, infer_random_uniform,
      "Uniform numbers from 0 (included) to 1 (excluded): the top bits of random_bits as mantissa "
      "of a number from 1 to 2, less 1. float64 draws 64 bits, float32 32, float16 16, bfloat16 "
      "8."));
  rows.back().decompose = decompose_uniform;
  return rows;
}

}  // namespace tracefire
