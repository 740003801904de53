// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracefire/data.h"
#include "tracefire/ops.h"
#include "tracefire/optim.h"
#include "tracefire/ref.h"
#include "tracefire/tensor.h"

/// Models in the shape of Keras: layers, losses, metrics, and fit, which hands whole epochs to the
/// engine. Nothing here is known to the trainer by name: subclass Layer, Loss, Metric,
/// optim::Optimizer or Model, and yours is treated as those are.
namespace tracefire::nn {

// ---- Seeds

/// Gives the process's source of seeds a start: what draws a seed of its own afterwards
/// (initializers, Dropout, the order of fit) draws the same ones in every run, on every device.
/// Without it they differ from run to run.
TRACEFIRE_API void set_seed(uint64_t seed);
/// The next seed of that source.
TRACEFIRE_API uint32_t next_seed();

/// A stream of keys for random operations. Its state is a variable, so that a traced step draws new
/// numbers every time it runs. The keys are those of keras.random.SeedGenerator with this seed.
class TRACEFIRE_API SeedGenerator {
 public:
  explicit SeedGenerator(std::optional<uint32_t> seed = {});
  /// uint32 [2], for random_uniform() and random_bits(); the state moves on.
  Tensor next() const;
  const Variable& state() const { return state_; }

 private:
  Variable state_;
};

// ---- Initializers and activations

/// Makes the first value of a variable. Random ones depend on their seed and the shape alone and
/// equal those of keras.initializers with this seed.
using Initializer = std::function<Tensor(const Shape& shape, DType dtype)>;
TRACEFIRE_API Initializer zeros();
TRACEFIRE_API Initializer ones();
TRACEFIRE_API Initializer filled_with(double value);
/// Uniform in [low, high).
TRACEFIRE_API Initializer uniform(double low, double high, std::optional<uint32_t> seed = {});
/// Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot, Bengio 2010).
TRACEFIRE_API Initializer glorot_uniform(std::optional<uint32_t> seed = {});
/// Uniform in +-sqrt(6 / fan_in) (He et al. 2015).
TRACEFIRE_API Initializer he_uniform(std::optional<uint32_t> seed = {});
/// Normal, cut at two standard deviations, with a variance of 2 / fan_in after the cut.
TRACEFIRE_API Initializer he_normal(std::optional<uint32_t> seed = {});

/// Any function of a tensor; of one that works along an axis (softmax, log_softmax), the last axis.
struct ActivationFunction : std::function<Tensor(const Tensor&)> {
  using std::function<Tensor(const Tensor&)>::function;
  ActivationFunction(Tensor (*along)(const Tensor& x, int64_t axis))  // NOLINT: given by its name
      : std::function<Tensor(const Tensor&)>([along](const Tensor& x) { return along(x, -1); }) {}
};
// The operations themselves, so that a call that finds both names is not ambiguous.
using tracefire::relu;
using tracefire::sigmoid;
using tracefire::softmax;
using tracefire::tanh;
/// x Phi(x), with the error function (Hendrycks, Gimpel 2016).
TRACEFIRE_API Tensor gelu(const Tensor& x);

// ---- Layers

/// How a model is being called.
struct Call {
  bool training = false;
};

/// A function of a tensor with variables of its own, created when the shape of its input is known.
/// A layer that was moved from can be assigned to and destroyed; anything else throws kBadUsage.
class TRACEFIRE_API Layer {
 public:
  virtual ~Layer();
  Layer(Layer&&) noexcept;
  Layer& operator=(Layer&&) noexcept;

  /// Builds the layer where it is not built yet, then calls it, under its name.
  Tensor operator()(const Tensor& input, const Call& call = {});
  /// Shape of the result for an input of this type; sizes may be symbols. Computes nothing but
  /// the first values of variables.
  Shape output_shape(const Shape& input, DType dtype = DType::kF32);

  bool built() const;
  /// Its own, then those of the layers it holds. A layer that is held in several places counts
  /// once, at the first of them.
  std::vector<Variable> variables() const;
  std::vector<Variable> trainable_variables() const;
  /// A frozen layer's variables are not trained. Takes effect at the next fit.
  void set_trainable(bool trainable);
  bool trainable() const;
  const std::string& name() const;
  void set_name(std::string name);
  /// Layers held, in the order in which they were added.
  const std::vector<Ref<Layer>>& layers() const;

 protected:
  explicit Layer(std::string name);

  /// Creates variables for inputs of this shape [batch, ...]. Runs once, outside of any trace.
  virtual void build(const Shape& input);
  /// The result for `input` [batch, ...]. Variables may be read and assigned.
  virtual Tensor call(const Tensor& input, const Call& call) = 0;

  /// A variable of the layer, called "<layer>/<name>".
  Variable add_variable(const std::string& name, const Shape& shape,
                        const Initializer& initializer = zeros(), bool trainable = true,
                        DType dtype = DType::kF32);
  /// Keys whose state belongs to the layer.
  SeedGenerator add_seed_generator(std::optional<uint32_t> seed = {});
  /// Another layer, whose variables then belong to this one as well.
  template <class T>
  std::shared_ptr<T> add_layer(T&& layer) {
    auto held = std::make_shared<T>(std::move(layer));
    hold(held);
    return held;
  }
  /// Errors: kBadAttribute for an empty layer, and for one that is, or holds, this layer.
  void hold(Ref<Layer> layer);

 private:
  struct State;
  State& state() const;  ///< kBadUsage where the layer was moved from
  bool contains(const Layer& other) const;
  std::unique_ptr<State> state_;
};

struct DenseOptions {
  ActivationFunction activation = {};  ///< none: the identity
  bool use_bias = true;
  Initializer kernel_initializer = {};  ///< none: glorot_uniform()
  Initializer bias_initializer = zeros();
  std::string name = "dense";
};

/// activation(x kernel + bias): [batch, ..., n] f32 -> [batch, ..., units]; kernel [n, units].
class TRACEFIRE_API Dense : public Layer {
 public:
  /// Errors: kBadAttribute for units < 1.
  explicit Dense(int64_t units, ActivationFunction activation = {});
  Dense(int64_t units, DenseOptions options);
  /// Undefined until the layer is built, by its first call or output_shape().
  const Variable& kernel() const { return kernel_; }
  /// The same; undefined also where use_bias is false.
  const Variable& bias() const { return bias_; }

 protected:
  void build(const Shape& input) override;
  Tensor call(const Tensor& input, const Call& call) override;

 private:
  int64_t units_;
  DenseOptions options_;
  Variable kernel_, bias_;
};

/// In training, sets a share `rate` of the elements to 0 and divides the others by 1 - rate; else
/// the identity. The masks are those of keras.layers.Dropout with this seed on JAX.
class TRACEFIRE_API Dropout : public Layer {
 public:
  /// Errors: kBadAttribute for a rate outside 0 … 1.
  explicit Dropout(double rate, std::optional<uint32_t> seed = {});

 protected:
  Tensor call(const Tensor& input, const Call& call) override;

 private:
  double rate_;
  SeedGenerator seeds_;
};

/// A function as a layer.
class TRACEFIRE_API Activation : public Layer {
 public:
  explicit Activation(ActivationFunction function, std::string name = "activation");

 protected:
  Tensor call(const Tensor& input, const Call& call) override;

 private:
  ActivationFunction function_;
};

/// [batch, ...] -> [batch, product of the others].
class TRACEFIRE_API Flatten : public Layer {
 public:
  Flatten();

 protected:
  Tensor call(const Tensor& input, const Call& call) override;
};

// ---- Losses

/// What training makes small.
class TRACEFIRE_API Loss {
 public:
  virtual ~Loss();
  /// The mean of call(): a scalar.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred) const;
  /// One value a row, [batch, ...].
  virtual Tensor call(const Tensor& y_true, const Tensor& y_pred) const = 0;
  /// Before training: throws where `y_true`, all rows of it, cannot be the truth of predictions of
  /// this shape. Default: accepts.
  virtual void check(const Tensor& y_true, const Shape& y_pred) const;
};

struct LossOptions {
  bool from_logits = false;  ///< predictions are logits, not probabilities
};

/// Whole-number labels [batch] (or [batch, 1]) and class scores [batch, C]: -log p(label), in nats.
/// Probabilities are scaled to sum to 1 and kept 1e-7 away from 0 and 1, as Keras does.
class TRACEFIRE_API SparseCategoricalCrossentropy : public Loss {
 public:
  explicit SparseCategoricalCrossentropy(const LossOptions& options = {}) : options_(options) {}
  Tensor call(const Tensor& y_true, const Tensor& y_pred) const override;
  /// Errors: kShapeMismatch, kDTypeMismatch; kIndexOutOfRange with the first row that is no class.
  void check(const Tensor& y_true, const Shape& y_pred) const override;

 private:
  LossOptions options_;
};

/// Targets [batch, C] that sum to 1 and class scores [batch, C]: -sum(target log p).
class TRACEFIRE_API CategoricalCrossentropy : public Loss {
 public:
  explicit CategoricalCrossentropy(const LossOptions& options = {}) : options_(options) {}
  Tensor call(const Tensor& y_true, const Tensor& y_pred) const override;
  void check(const Tensor& y_true, const Shape& y_pred) const override;

 private:
  LossOptions options_;
};

/// Mean over the last axis of the squared difference. A y_true of one axis less is taken as [..,
/// 1].
class TRACEFIRE_API MeanSquaredError : public Loss {
 public:
  Tensor call(const Tensor& y_true, const Tensor& y_pred) const override;
  void check(const Tensor& y_true, const Shape& y_pred) const override;
};

// ---- Metrics

/// A figure gathered over the batches of an epoch, in variables.
class TRACEFIRE_API Metric {
 public:
  virtual ~Metric();
  Metric(Metric&&) noexcept;
  Metric& operator=(Metric&&) noexcept;
  /// Takes in one batch.
  virtual void update(const Tensor& y_true, const Tensor& y_pred) = 0;
  /// f32 [] over everything since the last reset.
  virtual Tensor result() const = 0;
  /// Sets all variables to 0.
  virtual void reset();
  const std::string& name() const;
  const std::vector<Variable>& variables() const;

 protected:
  explicit Metric(std::string name);
  /// f32, zeros.
  Variable add_variable(const std::string& name, const Shape& shape = {});

 private:
  std::string name_;
  std::vector<Variable> variables_;
};

/// The mean of a value a row; subclasses say which.
class TRACEFIRE_API MeanMetric : public Metric {
 public:
  void update(const Tensor& y_true, const Tensor& y_pred) override;
  Tensor result() const override;
  /// Adds the mean `value` [] of `rows` rows.
  void add(const Tensor& value, int64_t rows);

 protected:
  explicit MeanMetric(std::string name);
  virtual Tensor values(const Tensor& y_true, const Tensor& y_pred) const = 0;

 private:
  Variable total_, count_;
};

/// The mean of a loss over rows.
class TRACEFIRE_API Mean : public MeanMetric {
 public:
  /// `loss` null: only what add() is given.
  explicit Mean(std::string name, Ref<Loss> loss = {});

 protected:
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  Ref<Loss> loss_;
};

/// Share of rows whose label [batch] (or [batch, 1]) is the place of the largest score [batch, C].
class TRACEFIRE_API SparseCategoricalAccuracy : public MeanMetric {
 public:
  explicit SparseCategoricalAccuracy(std::string name = "accuracy");

 protected:
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const override;
};

/// The same for targets [batch, C]: the places of the largest target and score agree.
class TRACEFIRE_API CategoricalAccuracy : public MeanMetric {
 public:
  explicit CategoricalAccuracy(std::string name = "accuracy");

 protected:
  Tensor values(const Tensor& y_true, const Tensor& y_pred) const override;
};

// ---- Models

/// What a step works on: as many rows as fit's batch_size, or fewer in the last step.
using Batch = data::Dataset;
/// Figures of a step: scalars by name.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Figures as numbers, in the order of the step that gave them.
class TRACEFIRE_API Report {
 public:
  void set(const std::string& name, double value);
  /// Errors: kIndexOutOfRange with the names that exist.
  double operator[](const std::string& name) const;
  const std::vector<std::pair<std::string, double>>& figures() const { return figures_; }
  /// "loss 0.1234  accuracy 0.9500".
  std::string str() const;

 private:
  std::vector<std::pair<std::string, double>> figures_;
};

/// Reports of the finished epochs. Validation figures are named "val_loss" and so on.
struct TRACEFIRE_API History {
  std::vector<Report> epochs;
  bool stopped = false;  ///< on_epoch ended training early
  /// One figure of every epoch that has it. Errors: kIndexOutOfRange where none has.
  std::vector<double> operator[](const std::string& name) const;
};

struct CompileOptions {
  Ref<optim::Optimizer> optimizer = {};
  Ref<Loss> loss = {};
  std::vector<Ref<Metric>> metrics = {};
};

struct FitOptions {
  int64_t batch_size = 32;
  int64_t epochs = 1;
  bool shuffle = true;                ///< rows in a new order every epoch
  std::optional<uint32_t> seed = {};  ///< of that order; none: next_seed()
  data::Dataset validation = {};      ///< evaluated after every epoch where it has rows
  bool verbose = true;                ///< progress on stderr: a bar on a terminal, else ten lines
  bool check_data = true;  ///< looks for NaN and infinity in x, and asks the loss about y
  /// After every epoch, with its number from 0; false ends training. It must not destroy the model.
  std::function<bool(int64_t epoch, const Report& report)> on_epoch = {};
};

struct EvaluateOptions {
  int64_t batch_size = 32;
  bool check_data = true;
};

/// A layer that can be trained.
class TRACEFIRE_API Model : public Layer {
 public:
  ~Model() override;
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// Chooses how to train. Steps traced before are traced anew.
  /// Errors: kBadAttribute where two metrics have one name, or one is called "loss"; kBadUsage
  /// while the model runs fit, evaluate or predict.
  void compile(CompileOptions options);

  /// Trains on `data`: moves it to the default device once, traces train_step once for full batches
  /// and once for the rest of the rows, and lets the engine run each epoch (Function::run_epoch).
  /// Errors, before anything is trained: kBadUsage where compile was not called or options cannot
  /// be, or where the model is busy already (on_epoch may evaluate and predict, but not train or
  /// compile its own model); kEmptyInput; kShapeMismatch, kDTypeMismatch; kNotFinite; what the loss
  /// says of y.
  /// kCancelled when set_interrupt_check() says so, and what a step finds in its data (an index out
  /// of range, a check, a host function that throws), with the batch: variables hold the state of
  /// the last whole good step and history() the epochs that were finished.
  History fit(const data::Dataset& data, const FitOptions& options = {});
  History fit(const Tensor& x, const Tensor& y, const FitOptions& options = {}) {
    return fit(data::Dataset{x, y}, options);
  }
  /// Loss and metrics over all rows. Errors: as fit.
  Report evaluate(const data::Dataset& data, const EvaluateOptions& options = {});
  Report evaluate(const Tensor& x, const Tensor& y, const EvaluateOptions& options = {}) {
    return evaluate(data::Dataset{x, y}, options);
  }
  /// Predictions for all rows of x. May be called from several threads. Errors: as fit.
  Tensor predict(const Tensor& x, int64_t batch_size = 32);

  /// Of the last fit, also where it was interrupted.
  const History& history() const;
  optim::Optimizer& optimizer() const;
  /// Layers, shapes of their results and sizes of their variables as a table. `input` as in
  /// output_shape().
  std::string summary(const Shape& input);

  // Steps. One batch each, traced as they are; override them for training of another kind.

  /// Default: predictions, loss, one step of the optimizer; gives the loss's mean and all metrics.
  virtual NamedTensors train_step(const Batch& batch);
  /// Default: the same without training.
  virtual NamedTensors test_step(const Batch& batch);
  /// Default: the model's result.
  virtual Tensor predict_step(const Tensor& x);
  /// Runs before every epoch and evaluation. Default: resets the mean of the loss and all metrics.
  virtual void reset_metrics();

 protected:
  explicit Model(std::string name);
  /// The compiled loss: a scalar.
  Tensor compute_loss(const Batch& batch, const Tensor& y_pred) const;
  /// Takes the batch into the mean of the loss and into every metric; gives all of them.
  NamedTensors update_metrics(const Batch& batch, const Tensor& y_pred, const Tensor& loss);
  /// Whether every layer's input is the result of the one before; for summary().
  virtual bool is_chain() const { return false; }

 private:
  friend class Trainer;
  struct State;
  State& training() const;  ///< kBadUsage where the model was moved from
  void check_not_moved(const std::shared_ptr<State>& training) const;
  std::shared_ptr<State> training_;  ///< shared with a fit that is running
};

/// Layers one after the other: Sequential model({Dense(128, relu), Dropout(0.2), Dense(10)}). A
/// layer may come in several places, which then share its variables.
class TRACEFIRE_API Sequential : public Model {
  /// What {} alone is: without it, Sequential({}) could also mean a copy of an empty model.
  enum class NoLayers {};

 public:
  explicit Sequential(std::vector<Ref<Layer>> layers = {}, std::string name = "sequential");
  explicit Sequential(NoLayers, std::string name = "sequential")
      : Sequential(std::vector<Ref<Layer>>(), std::move(name)) {}
  /// Equal names of different layers are numbered: "dense", "dense_1".
  /// Errors: kBadAttribute for an empty layer, and for one that is, or holds, this model.
  void add(Ref<Layer> layer);

 protected:
  Tensor call(const Tensor& input, const Call& call) override;
  bool is_chain() const override { return true; }
};

}  // namespace tracefire::nn
