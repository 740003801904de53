// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"
#include "tracefire/config.h"
#include "tracefire/function.h"
#include "tracefire/nn.h"

namespace tracefire::nn {

struct Layer::State {
  std::string name;
  bool built = false;
  bool trainable = true;
  std::vector<Variable> variables;
  std::vector<Ref<Layer>> layers;
};

Layer::Layer(std::string name) : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
}
Layer::~Layer() = default;
Layer::Layer(Layer&&) noexcept = default;
Layer& Layer::operator=(Layer&&) noexcept = default;

Tensor Layer::operator()(const Tensor& input, const Call& call) {
  if (!state_->built) {
    const InitScope now;
    const size_t variables = state_->variables.size(), layers = state_->layers.size();
    try {
      build(input.shape());
    } catch (...) {  // may be tried again, with another input
      state_->variables.resize(variables);
      state_->layers.resize(layers);
      throw;
    }
    state_->built = true;
  }
  const NameScope scope(state_->name);
  return this->call(input, call);
}

Shape Layer::output_shape(const Shape& input, DType dtype) {
  AbstractScope scope;
  return (*this)(scope.parameter(dtype, input)).shape();
}

void Layer::build(const Shape&) {}

Variable Layer::add_variable(const std::string& name, const Shape& shape,
                             const Initializer& initializer, bool trainable, DType dtype) {
  const std::string full = state_->name + "/" + name;
  if (!shape.is_constant()) {
    error(ErrorCode::kSymbolUnbound, "variable '", full, "' has the shape ", shape.str(),
          "; the sizes of variables must be numbers")
        .throw_if_error();
  }
  const InitScope now;
  const Tensor first = initializer(shape, dtype);
  if (first.dtype() != dtype || first.shape() != shape) {
    error(ErrorCode::kShapeMismatch, "the initializer of '", full, "' gave ",
          dtype_name(first.dtype()), " ", first.shape().str(), "; ", dtype_name(dtype), " ",
          shape.str(), " was asked for")
        .throw_if_error();
  }
  state_->variables.emplace_back(first, full, trainable);
  return state_->variables.back();
}

SeedGenerator Layer::add_seed_generator(std::optional<uint32_t> seed) {
  SeedGenerator generator(seed);
  state_->variables.push_back(generator.state());
  return generator;
}

void Layer::hold(Ref<Layer> layer) {
  if (!layer) {
    error(ErrorCode::kBadAttribute, "layer '", state_->name, "' was given an empty layer")
        .throw_if_error();
  }
  state_->layers.push_back(std::move(layer));
}

bool Layer::built() const { return state_->built; }
bool Layer::trainable() const { return state_->trainable; }
void Layer::set_trainable(bool trainable) { state_->trainable = trainable; }
const std::string& Layer::name() const { return state_->name; }
void Layer::set_name(std::string name) { state_->name = std::move(name); }
const std::vector<Ref<Layer>>& Layer::layers() const { return state_->layers; }

std::vector<Variable> Layer::variables() const {
  std::vector<Variable> out = state_->variables;
  for (const Ref<Layer>& layer : state_->layers) {
    const std::vector<Variable> held = layer->variables();
    out.insert(out.end(), held.begin(), held.end());
  }
  return out;
}

std::vector<Variable> Layer::trainable_variables() const {
  std::vector<Variable> out;
  if (!state_->trainable) return out;
  for (const Variable& variable : state_->variables) {
    if (variable.trainable()) out.push_back(variable);
  }
  for (const Ref<Layer>& layer : state_->layers) {
    const std::vector<Variable> held = layer->trainable_variables();
    out.insert(out.end(), held.begin(), held.end());
  }
  return out;
}

}  // namespace tracefire::nn
