// SPDX-License-Identifier: Apache-2.0
#include "tracefire/optim.h"

#include <unordered_set>

#include "core/base/status.h"
#include "lib/nn/values.h"
#include "tracefire/function.h"
#include "tracefire/grad.h"

namespace tracefire::optim {
namespace {

using nn::constant;
using nn::scalar_like;

void check_rate(double rate) {
  if (std::isfinite(rate) && rate >= 0) return;
  error(ErrorCode::kBadAttribute, "learning_rate is ", rate,
        "; it must be a finite number of at least 0, for example 0.001")
      .throw_if_error();
}

void check_decay(const char* name, double value) {
  if (value >= 0 && value < 1) return;
  error(ErrorCode::kBadAttribute, name, " is ", value, "; it must be at least 0 and below 1")
      .throw_if_error();
}

}  // namespace

struct Optimizer::State {
  std::string name;
  Variable learning_rate, iterations;
  std::vector<Variable> built;                ///< in the order of building
  std::vector<std::vector<Variable>> states;  ///< of built[i]
  std::unordered_map<const trace::Slot*, size_t> index;
};

Optimizer::Optimizer(std::string name, double learning_rate) : state_(std::make_unique<State>()) {
  check_rate(learning_rate);
  const InitScope now;
  state_->learning_rate = Variable(Tensor::scalar(static_cast<float>(learning_rate)),
                                   name + "/learning_rate", /*trainable=*/false);
  state_->iterations = Variable(Tensor::scalar(int64_t{0}), name + "/iterations", false);
  state_->name = std::move(name);
}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

Optimizer::State& Optimizer::state() const {
  if (!state_) {
    error(ErrorCode::kBadUsage,
          "an optimizer was used after it was moved from; use the one it went to")
        .throw_if_error();
  }
  return *state_;
}

void Optimizer::build(const std::vector<Variable>& variables) {
  const InitScope now;
  for (const Variable& variable : variables) {
    if (state().index.count(variable.slot().get()) != 0) continue;
    std::vector<Variable> made = make_state(variable);
    variable.name();  // throws where it is undefined
    state().index.emplace(variable.slot().get(), state().built.size());
    state().built.push_back(variable);
    state().states.push_back(std::move(made));
  }
}

void Optimizer::apply(const std::vector<Tensor>& grads, const std::vector<Variable>& variables) {
  if (grads.size() != variables.size()) {
    error(ErrorCode::kShapeMismatch, name(), " got ", grads.size(), " gradients for ",
          variables.size(), " variables; there must be one each")
        .throw_if_error();
  }
  std::unordered_set<const trace::Slot*> given;
  for (size_t i = 0; i < grads.size(); ++i) {
    const Variable& variable = variables[i];
    if (!given.insert(variable.slot().get()).second) {
      error(ErrorCode::kBadAttribute, name(), " got variable '", variable.name(),
            "' twice; give each variable once, with its whole gradient")
          .throw_if_error();
    }
    if (!grads[i].defined()) {
      error(ErrorCode::kNoGradient, "the loss does not depend on variable '", variable.name(),
            "'; use it in the model, or freeze its layer with set_trainable(false)")
          .throw_if_error();
    }
    if (grads[i].dtype() != variable.dtype() || grads[i].shape() != variable.shape()) {
      error(ErrorCode::kShapeMismatch, "the gradient of variable '", variable.name(), "' is ",
            dtype_name(grads[i].dtype()), " ", grads[i].shape().str(), ", the variable is ",
            dtype_name(variable.dtype()), " ", variable.shape().str(), "; they must agree")
          .throw_if_error();
    }
  }
  build(variables);
  const Tensor number = add(state().iterations.read(), constant(1, DType::kI64));
  state().iterations.assign(number);
  const Step step{number, state().learning_rate.read()};
  for (size_t i = 0; i < grads.size(); ++i) {
    update(grads[i], variables[i], state().states[state().index.at(variables[i].slot().get())],
           step);
  }
}

void Optimizer::minimize(const Tensor& loss, const std::vector<Variable>& variables) {
  std::vector<Tensor> values;
  for (const Variable& variable : variables) values.push_back(variable.read());
  apply(gradients({loss}, values), variables);
}

double Optimizer::learning_rate() const {
  return static_cast<double>(state().learning_rate.read().item<float>());
}

void Optimizer::set_learning_rate(double learning_rate) {
  check_rate(learning_rate);
  state().learning_rate.assign(Tensor::scalar(static_cast<float>(learning_rate)));
}

const Variable& Optimizer::learning_rate_variable() const { return state().learning_rate; }
const Variable& Optimizer::iterations() const { return state().iterations; }
const std::string& Optimizer::name() const { return state().name; }

std::vector<Variable> Optimizer::variables() const {
  std::vector<Variable> out{state().learning_rate, state().iterations};
  for (const auto& state : state().states) out.insert(out.end(), state.begin(), state.end());
  return out;
}

std::vector<Variable> Optimizer::make_state(const Variable&) const { return {}; }

Variable Optimizer::zeros_like(const Variable& variable, const std::string& suffix) {
  return Variable(constant(0, variable.dtype(), variable.shape()), variable.name() + "/" + suffix,
                  /*trainable=*/false);
}

Sgd::Sgd(double learning_rate) : Sgd(SgdOptions{.learning_rate = learning_rate}) {}
Sgd::Sgd(const SgdOptions& options)
    : Optimizer("sgd", options.learning_rate),
      momentum_(options.momentum),
      nesterov_(options.nesterov) {
  check_decay("momentum", momentum_);
}

std::vector<Variable> Sgd::make_state(const Variable& variable) const {
  if (momentum_ == 0) return {};
  return {zeros_like(variable, "momentum")};
}

void Sgd::update(const Tensor& grad, const Variable& variable, const std::vector<Variable>& state,
                 const Step& step) {
  const Tensor move = mul(grad, nn::as_dtype(step.learning_rate, grad.dtype()));
  if (state.empty()) {
    variable.assign(sub(variable.read(), move));
    return;
  }
  const Tensor mu = scalar_like(momentum_, grad);
  const Tensor velocity = sub(mul(state[0].read(), mu), move);
  state[0].assign(velocity);
  const Tensor ahead = nesterov_ ? sub(mul(velocity, mu), move) : velocity;
  variable.assign(add(variable.read(), ahead));
}

Adam::Adam(double learning_rate) : Adam(AdamOptions{.learning_rate = learning_rate}) {}
Adam::Adam(const AdamOptions& options)
    : Optimizer("adam", options.learning_rate), options_(options) {
  check_decay("beta1", options_.beta1);
  check_decay("beta2", options_.beta2);
  if (!(options_.epsilon > 0)) {
    error(ErrorCode::kBadAttribute, "epsilon is ", options_.epsilon, "; it must be above 0")
        .throw_if_error();
  }
}

std::vector<Variable> Adam::make_state(const Variable& variable) const {
  return {zeros_like(variable, "m"), zeros_like(variable, "v")};
}

void Adam::update(const Tensor& grad, const Variable& variable, const std::vector<Variable>& state,
                  const Step& step) {
  const AdamUpdateResult next =
      adam_update(variable.read(), grad, state[0].read(), state[1].read(), step.number,
                  step.learning_rate, options_.beta1, options_.beta2, options_.epsilon);
  variable.assign(next.param);
  state[0].assign(next.m);
  state[1].assign(next.v);
}

}  // namespace tracefire::optim
