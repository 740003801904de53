// SPDX-License-Identifier: Apache-2.0
// Seeds, and first values of variables. Numbers equal those of keras.random: bits by Threefry-2x32,
// and from bits to numbers the ways of jax.random.
#include <cmath>
#include <mutex>
#include <numbers>
#include <random>

#include "core/base/status.h"
#include "lib/nn/shuffle.h"
#include "lib/nn/values.h"
#include "tracefire/function.h"
#include "tracefire/nn.h"

namespace tracefire::nn {
namespace {

/// The source of seeds: number i is a hash of (start, i).
struct SeedSource {
  std::mutex mutex;
  uint64_t start = 0, drawn = 0;
  bool started = false;

  static SeedSource& instance() {
    static SeedSource source;
    return source;
  }
};

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t hash(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Tensor key_of(uint32_t seed) { return Tensor::of<uint32_t>({seed, 0}, {2}); }

/// Uniform in [low, high): low + unit (high - low) rounded once, as XLA compiles it.
Tensor draw_uniform(uint32_t seed, double low, double high, const Shape& shape, DType dtype) {
  const Tensor bottom = constant(low, dtype);
  const Tensor unit = random_uniform(key_of(seed), shape, dtype);
  return maximum(bottom, fma(unit, sub(constant(high, dtype), bottom), bottom));
}

/// Normal of mean 0, cut at two standard deviations.
Tensor draw_cut_normal(uint32_t seed, double deviation, const Shape& shape, DType dtype) {
  const double edge = std::erf(std::numbers::sqrt2);
  const Tensor sample = mul(constant(std::numbers::sqrt2, dtype),
                            erf_inv(draw_uniform(seed, -edge, edge, shape, dtype)));
  // The next number below 2.
  const Tensor limit = constant(2 * (dtype == DType::kF64 ? 1 - 0x1p-53 : 1 - 0x1p-24), dtype);
  const Tensor cut = minimum(maximum(sample, neg(limit)), limit);
  return mul(cut, constant(deviation, dtype));
}

struct Fans {
  double in, out;
};

/// Inputs and outputs of one unit: the last two axes, times what lies before them (the window of a
/// convolution), as keras.initializers counts.
Fans fans_of(const Shape& shape) {
  const std::vector<int64_t> sizes = shape.sizes();
  if (sizes.empty()) return {1, 1};
  if (sizes.size() == 1) return {static_cast<double>(sizes[0]), static_cast<double>(sizes[0])};
  double window = 1;
  for (size_t i = 0; i + 2 < sizes.size(); ++i) window *= static_cast<double>(sizes[i]);
  return {window * static_cast<double>(sizes[sizes.size() - 2]),
          window * static_cast<double>(sizes.back())};
}

void check_real(DType dtype) {
  if (dtype == DType::kF32 || dtype == DType::kF64) return;
  error(ErrorCode::kDTypeMismatch, "random first values of ", dtype_name(dtype),
        " were asked for; they are made as float32 or float64")
      .throw_if_error();
}

}  // namespace

void set_seed(uint64_t seed) {
  SeedSource& source = SeedSource::instance();
  std::lock_guard<std::mutex> lock(source.mutex);
  source.start = seed;
  source.drawn = 0;
  source.started = true;
}

uint32_t next_seed() {
  SeedSource& source = SeedSource::instance();
  std::lock_guard<std::mutex> lock(source.mutex);
  if (!source.started) {
    std::random_device device;
    source.start = uint64_t{device()} << 32 | device();
    source.started = true;
  }
  return static_cast<uint32_t>(hash(source.start + ++source.drawn * 0x9e3779b97f4a7c15u) >> 32);
}

std::vector<int32_t> shuffled_rows(int64_t rows, uint32_t seed, int64_t epoch) {
  std::vector<int32_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  const uint64_t stream = hash(hash(seed + uint64_t{1}) + static_cast<uint64_t>(epoch));
  // Fisher and Yates, from the end; a bias of rows / 2^32 is left.
  for (auto i = static_cast<uint64_t>(rows); i > 1; --i) {
    const uint64_t word = hash(stream + i * 0x9e3779b97f4a7c15u) >> 32;
    std::swap(order[i - 1], order[word * i >> 32]);
  }
  return order;
}

SeedGenerator::SeedGenerator(std::optional<uint32_t> seed) {
  const InitScope now;
  state_ = Variable(key_of(seed ? *seed : next_seed()), "seed_generator", /*trainable=*/false);
}

Tensor SeedGenerator::next() const {
  const Tensor key = state_.read();
  state_.assign(add(key, Tensor::of<uint32_t>({0, 1}, {2})));
  return key;
}

Initializer zeros() { return filled_with(0); }
Initializer ones() { return filled_with(1); }
Initializer filled_with(double value) {
  return [=](const Shape& shape, DType dtype) { return constant(value, dtype, shape); };
}

Initializer uniform(double low, double high, std::optional<uint32_t> seed) {
  if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high)) {
    error(ErrorCode::kBadAttribute, "uniform() got low ", low, " and high ", high,
          "; low must not be above high, and both be finite")
        .throw_if_error();
  }
  return [=, key = seed ? *seed : next_seed()](const Shape& shape, DType dtype) {
    check_real(dtype);
    return draw_uniform(key, low, high, shape, dtype);
  };
}

Initializer glorot_uniform(std::optional<uint32_t> seed) {
  return [key = seed ? *seed : next_seed()](const Shape& shape, DType dtype) {
    check_real(dtype);
    const Fans fans = fans_of(shape);
    const double limit = std::sqrt(3 / std::max(1.0, (fans.in + fans.out) / 2));
    return draw_uniform(key, -limit, limit, shape, dtype);
  };
}

Initializer he_uniform(std::optional<uint32_t> seed) {
  return [key = seed ? *seed : next_seed()](const Shape& shape, DType dtype) {
    check_real(dtype);
    const double limit = std::sqrt(6 / std::max(1.0, fans_of(shape).in));
    return draw_uniform(key, -limit, limit, shape, dtype);
  };
}

Initializer he_normal(std::optional<uint32_t> seed) {
  return [key = seed ? *seed : next_seed()](const Shape& shape, DType dtype) {
    check_real(dtype);
    // What the cut leaves of a standard normal's deviation.
    constexpr double kCut = 0.87962566103423978;
    const double deviation = std::sqrt(2 / std::max(1.0, fans_of(shape).in)) / kCut;
    return draw_cut_normal(key, deviation, shape, dtype);
  };
}

}  // namespace tracefire::nn
