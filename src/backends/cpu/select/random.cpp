// SPDX-License-Identifier: Apache-2.0
// Random words and numbers outside loops: every width, and with an offset.

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/move/numbers.h"
#include "backends/cpu/tile/tile_table.h"

namespace tracefire::cpu {
namespace {

constexpr int64_t kPiece = 1024;

/// Words of one launch: which generator, and where the numbers start.
struct Words {
  RandomFn narrow, wide;  // 32 and 64 bits an element
  ReadInteger read_offset = nullptr;
  int64_t elements;

  explicit Words(const NodeView& node) : elements(elements_of(node.outputs[0])) {
    const bool philox = node.node->attrs.text("algorithm") == "philox4x32";
    const TileTable& table = tile_table();
    narrow = philox ? table.philox32 : table.threefry32;
    wide = philox ? table.philox64 : table.threefry64;
    if (node.inputs.size() > 1) read_offset = integer_reader(node.inputs[1].dtype);
  }

  /// Calls fn(words, first, count) for pieces of the result; Word is uint32_t or uint64_t.
  template <class Word, class Fn>
  void for_each_piece(const LaunchArgs& args, Fn fn) const {
    const uint32_t* key = static_cast<const uint32_t*>(args.inputs[0]);
    const uint64_t offset =
        read_offset ? static_cast<uint64_t>(read_offset(args.inputs[1], 0)) : 0;
    const RandomFn draw = sizeof(Word) == 8 ? wide : narrow;
    const int64_t pieces = (elements + kPiece - 1) / kPiece;
    parallel_for(pieces, 8, [&](int64_t begin, int64_t end) {
      alignas(64) Word words[kPiece];
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t first = piece * kPiece, count = std::min(kPiece, elements - first);
        draw(words, key, offset + static_cast<uint64_t>(first), count);
        fn(words, first, count);
      }
    });
  }
};

BoundLaunch bind_bits(const NodeView& node) {
  const Words words(node);
  const DType dtype = node.outputs[0].dtype;
  return make_launch("cpu_random_bits", [=](const LaunchArgs& args) -> Status {
    with_integer(dtype, [&](auto element) {
      using T = decltype(element);
      using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
      T* out = static_cast<T*>(args.outputs[0]);
      words.for_each_piece<Word>(args, [out](const Word* drawn, int64_t first, int64_t count) {
        for (int64_t i = 0; i < count; ++i) out[first + i] = static_cast<T>(drawn[i]);
      });
    });
    return {};
  });
}

/// The `mantissa` top bits of the `bits` low bits of a word, as a number from 0 to 1 (excluded).
template <class T, int bits, int mantissa>
void uniform(const Words& words, const LaunchArgs& args) {
  using Word = std::conditional_t<bits == 64, uint64_t, uint32_t>;
  using C = Computed<T>;
  T* out = static_cast<T*>(args.outputs[0]);
  const C unit = static_cast<C>(std::ldexp(1.0, -mantissa));
  constexpr Word kMask = static_cast<Word>(~Word{0} >> (sizeof(Word) * 8 - bits));
  words.for_each_piece<Word>(args, [=](const Word* drawn, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const Word top = static_cast<Word>((drawn[i] & kMask) >> (bits - mantissa));
      out[first + i] = static_cast<T>(static_cast<C>(top) * unit);
    }
  });
}

BoundLaunch bind_uniform(const NodeView& node) {
  const Words words(node);
  const DType dtype = node.outputs[0].dtype;
  return make_launch("cpu_random_uniform", [=](const LaunchArgs& args) -> Status {
    switch (dtype) {
      case DType::kF64: uniform<double, 64, 52>(words, args); break;
      case DType::kF32: uniform<float, 32, 23>(words, args); break;
      case DType::kF16: uniform<Half, 16, 10>(words, args); break;
      default: uniform<BFloat16, 8, 7>(words, args);
    }
    return {};
  });
}

}  // namespace

std::vector<KernelSpec> random_kernels() {
  return {
      {"random_bits", "cpu_random_bits", accept_any, bind_bits},
      {"random_uniform", "cpu_random_uniform", accept_any, bind_uniform},
  };
}

}  // namespace tracefire::cpu
