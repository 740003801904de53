// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tracefire/tensor.h"

/// Optimizers: they turn gradients into new values of variables. One's own subclasses Optimizer and
/// has the same rights as those here.
namespace tracefire::optim {

/// What an update may use besides its gradient; both are scalars on the device.
struct Step {
  Tensor number;         ///< int64 []: 1 in the first update
  Tensor learning_rate;  ///< f32 []
};

/// Base of the optimizers. One that was moved from can be assigned to and destroyed; anything else
/// throws kBadUsage.
class TRACEFIRE_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// Creates the state of `variables` where it is not there yet. Needed before a step is traced;
  /// Model::fit does it.
  void build(const std::vector<Variable>& variables);
  /// One update of each variable by its gradient, and one more step counted.
  /// Errors: kShapeMismatch where there are not as many gradients as variables, or one has another
  /// shape; kNoGradient where one is undefined; kBadAttribute where a variable comes twice.
  void apply(const std::vector<Tensor>& grads, const std::vector<Variable>& variables);
  /// Inside a function being traced: takes the gradients of the scalar `loss` and applies them.
  void minimize(const Tensor& loss, const std::vector<Variable>& variables);

  /// Waits for the device. Inside a function being traced read learning_rate_variable().
  double learning_rate() const;
  /// Takes effect at the next step, also of functions traced before.
  void set_learning_rate(double learning_rate);
  const Variable& learning_rate_variable() const;
  /// int64 []: updates done.
  const Variable& iterations() const;
  /// Learning rate, number of updates and the state of every variable built.
  std::vector<Variable> variables() const;
  const std::string& name() const;

 protected:
  /// Errors: kBadAttribute where the rate is negative or not finite.
  Optimizer(std::string name, double learning_rate);

  /// State of one variable, created once: zeros_like() for each moment. Default: none.
  virtual std::vector<Variable> make_state(const Variable& variable) const;
  /// Assigns the new value of `variable`, and of its `state`. `grad` has the variable's type.
  virtual void update(const Tensor& grad, const Variable& variable,
                      const std::vector<Variable>& state, const Step& step) = 0;
  /// A variable of zeros named "<variable>/<suffix>", for make_state().
  static Variable zeros_like(const Variable& variable, const std::string& suffix);

 private:
  struct State;
  State& state() const;  ///< kBadUsage where the optimizer was moved from
  std::unique_ptr<State> state_;
};

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;    ///< 0 … 1
  bool nesterov = false;  ///< looks ahead by one momentum
};

/// Stochastic gradient descent. With momentum mu: m = mu m - rate g; w += m, or with Nesterov's
/// look ahead w += mu m - rate g (Sutskever et al. 2013, as Keras computes it).
class TRACEFIRE_API Sgd : public Optimizer {
 public:
  explicit Sgd(double learning_rate = 0.01);
  explicit Sgd(const SgdOptions& options);

 protected:
  std::vector<Variable> make_state(const Variable& variable) const override;
  void update(const Tensor& grad, const Variable& variable, const std::vector<Variable>& state,
              const Step& step) override;

 private:
  double momentum_;
  bool nesterov_;
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;     ///< decay of the mean of gradients
  double beta2 = 0.999;   ///< decay of the mean of their squares
  double epsilon = 1e-7;  ///< added to the root
};

/// Adam (Kingma, Ba 2015, the order of section 2): one `adam_update` a variable, see docs/ops.md.
class TRACEFIRE_API Adam : public Optimizer {
 public:
  explicit Adam(double learning_rate = 1e-3);
  explicit Adam(const AdamOptions& options);

 protected:
  std::vector<Variable> make_state(const Variable& variable) const override;
  void update(const Tensor& grad, const Variable& variable, const std::vector<Variable>& state,
              const Step& step) override;

 private:
  AdamOptions options_;
};

}  // namespace tracefire::optim
