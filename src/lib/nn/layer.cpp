// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <unordered_set>

#include "core/base/status.h"
#include "tracefire/config.h"
#include "tracefire/function.h"
#include "tracefire/nn.h"

namespace tracefire {

void empty_ref_used() {
  error(ErrorCode::kBadUsage, "an empty Ref was used; give it an object first").throw_if_error();
  std::abort();  // not reached
}

}  // namespace tracefire

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

Layer::State& Layer::state() const {
  if (!state_) {
    error(ErrorCode::kBadUsage, "a layer was used after it was moved from; use the one it went to")
        .throw_if_error();
  }
  return *state_;
}

Tensor Layer::operator()(const Tensor& input, const Call& call) {
  State& state = this->state();
  if (!state.built) {
    const InitScope now;
    const size_t variables = state.variables.size(), layers = state.layers.size();
    try {
      build(input.shape());
    } catch (...) {  // may be tried again, with another input
      state.variables.resize(variables);
      state.layers.resize(layers);
      throw;
    }
    state.built = true;
  }
  const NameScope scope(state.name);
  return this->call(input, call);
}

Shape Layer::output_shape(const Shape& input, DType dtype) {
  AbstractScope scope;
  return (*this)(scope.parameter(dtype, input)).shape();
}

void Layer::build(const Shape&) {}

Variable Layer::add_variable(const std::string& name, const Shape& shape,
                             const Initializer& initializer, bool trainable, DType dtype) {
  const std::string full = state().name + "/" + name;
  if (!shape.is_constant()) {
    error(ErrorCode::kSymbolUnbound, "variable '", full, "' has the shape ", shape.str(),
          "; the sizes of variables must be numbers")
        .throw_if_error();
  }
  if (!initializer) {
    error(ErrorCode::kBadAttribute, "variable '", full, "' was given an empty initializer")
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
  state().variables.emplace_back(first, full, trainable);
  return state().variables.back();
}

SeedGenerator Layer::add_seed_generator(std::optional<uint32_t> seed) {
  SeedGenerator generator(seed);
  state().variables.push_back(generator.state());
  return generator;
}

void Layer::hold(Ref<Layer> layer) {
  if (!layer) {
    error(ErrorCode::kBadAttribute, "layer '", state().name, "' was given an empty layer")
        .throw_if_error();
  }
  if (layer->contains(*this)) {
    error(ErrorCode::kBadAttribute, "layer '", name(), "' was given ",
          &*layer == this ? std::string("itself") : "'" + layer->name() + "', which holds it",
          "; a layer cannot be a part of itself")
        .throw_if_error();
  }
  state().layers.push_back(std::move(layer));
}

bool Layer::built() const { return state().built; }
bool Layer::trainable() const { return state().trainable; }
void Layer::set_trainable(bool trainable) { state().trainable = trainable; }
const std::string& Layer::name() const { return state().name; }
void Layer::set_name(std::string name) { state().name = std::move(name); }
const std::vector<Ref<Layer>>& Layer::layers() const { return state().layers; }

namespace {

/// Calls `visit` for `layer` and all it holds, each once, in the order of a walk from the top;
/// `visit` says whether what the layer holds is of interest.
template <class Visit>
void walk(const Layer& top, Visit visit) {
  std::unordered_set<const Layer*> seen;
  std::vector<const Layer*> waiting{&top};
  while (!waiting.empty()) {
    const Layer& layer = *waiting.back();
    waiting.pop_back();
    if (!seen.insert(&layer).second || !visit(layer)) continue;
    const std::vector<Ref<Layer>>& held = layer.layers();
    for (size_t i = held.size(); i-- > 0;) waiting.push_back(&*held[i]);
  }
}

}  // namespace

bool Layer::contains(const Layer& other) const {
  bool found = false;
  walk(*this, [&](const Layer& layer) {
    found |= &layer == &other;
    return !found;
  });
  return found;
}

std::vector<Variable> Layer::variables() const {
  std::vector<Variable> out;
  walk(*this, [&](const Layer& layer) {
    const std::vector<Variable>& own = layer.state().variables;
    out.insert(out.end(), own.begin(), own.end());
    return true;
  });
  return out;
}

std::vector<Variable> Layer::trainable_variables() const {
  std::vector<Variable> out;
  walk(*this, [&](const Layer& layer) {
    if (!layer.trainable()) return false;
    for (const Variable& variable : layer.state().variables) {
      if (variable.trainable()) out.push_back(variable);
    }
    return true;
  });
  return out;
}

}  // namespace tracefire::nn
