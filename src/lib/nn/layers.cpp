// SPDX-License-Identifier: Apache-2.0
// The layers that come with the library, and activations.
#include <cmath>
#include <numbers>

#include "core/base/status.h"
#include "lib/nn/values.h"
#include "tracefire/nn.h"

namespace tracefire::nn {

Tensor gelu(const Tensor& x) {
  const Tensor inside = erf(mul(x, scalar_like(1 / std::numbers::sqrt2, x)));
  const Tensor below = mul(add(inside, scalar_like(1, x)), scalar_like(0.5, x));
  return mul(x, below);
}

Dense::Dense(int64_t units, ActivationFunction activation)
    : Dense(units, DenseOptions{.activation = std::move(activation)}) {}

Dense::Dense(int64_t units, DenseOptions options)
    : Layer(options.name), units_(units), options_(std::move(options)) {
  if (units_ < 1) {
    error(ErrorCode::kBadAttribute, "Dense got ", units_, " units; it needs at least 1")
        .throw_if_error();
  }
  if (!options_.kernel_initializer) options_.kernel_initializer = glorot_uniform();
}

void Dense::build(const Shape& input) {
  if (input.rank() < 2 || !input[input.rank() - 1].is_constant()) {
    error(ErrorCode::kShapeMismatch, "Dense '", name(), "' got an input of shape ", input.str(),
          "; it needs [batch, ..., features] with a fixed number of features")
        .throw_if_error();
  }
  const Dim features = input[input.rank() - 1];
  kernel_ = add_variable("kernel", Shape{features, units_}, options_.kernel_initializer);
  if (options_.use_bias) bias_ = add_variable("bias", Shape{units_}, options_.bias_initializer);
}

Tensor Dense::call(const Tensor& input, const Call&) {
  const Shape& shape = input.shape();
  if (input.dtype() != kernel_.dtype()) {
    error(ErrorCode::kDTypeMismatch, "Dense '", name(), "' got ", dtype_name(input.dtype()),
          " input; it needs ", dtype_name(kernel_.dtype()), ". Cast the data first")
        .throw_if_error();
  }
  if (shape.rank() < 2 || shape[shape.rank() - 1] != kernel_.shape()[0]) {
    error(ErrorCode::kShapeMismatch, "Dense '", name(), "' was built for ",
          kernel_.shape()[0].str(), " features and got an input of shape ", shape.str())
        .throw_if_error();
  }
  // Rows of all axes but the last are rows of one product.
  Tensor flat = input;
  if (shape.rank() > 2) {
    Dim rows = 1;
    for (int axis = 0; axis + 1 < shape.rank(); ++axis) rows = rows * shape[axis];
    flat = reshape(input, Shape{rows, kernel_.shape()[0]});
  }
  Tensor y = matmul(flat, kernel_.read());
  if (options_.use_bias) y = add(y, bias_.read());
  if (shape.rank() > 2) {
    std::vector<Dim> dims(shape.begin(), shape.end() - 1);
    dims.emplace_back(units_);
    y = reshape(y, Shape(std::move(dims)));
  }
  return options_.activation ? options_.activation(y) : y;
}

Dropout::Dropout(double rate, std::optional<uint32_t> seed)
    : Layer("dropout"), rate_(rate), seeds_(add_seed_generator(seed)) {
  if (!(rate_ >= 0 && rate_ <= 1)) {
    error(ErrorCode::kBadAttribute, "Dropout got the rate ", rate_,
          "; it is a share of the elements, from 0 to 1")
        .throw_if_error();
  }
}

Tensor Dropout::call(const Tensor& input, const Call& call) {
  if (!call.training || rate_ == 0) return input;
  const Tensor zero = scalar_like(0, input);
  if (rate_ == 1) return broadcast_to(zero, input.shape());
  const double keep = 1 - rate_;
  const Tensor mask =
      less(random_uniform(seeds_.next(), input.shape()), constant(keep, DType::kF32));
  return select(mask, div(input, scalar_like(keep, input)), zero);
}

Activation::Activation(ActivationFunction function, std::string name)
    : Layer(std::move(name)), function_(std::move(function)) {
  if (!function_) {
    error(ErrorCode::kBadAttribute, "Activation got no function; give one such as nn::relu")
        .throw_if_error();
  }
}

Tensor Activation::call(const Tensor& input, const Call&) { return function_(input); }

Flatten::Flatten() : Layer("flatten") {}

Tensor Flatten::call(const Tensor& input, const Call&) {
  const Shape& shape = input.shape();
  if (shape.rank() < 1) {
    error(ErrorCode::kShapeMismatch, "Flatten '", name(), "' got a scalar; it needs [batch, ...]")
        .throw_if_error();
  }
  Dim features = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) features = features * shape[axis];
  return reshape(input, Shape{shape[0], features});
}

}  // namespace tracefire::nn
