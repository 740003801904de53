# SPDX-License-Identifier: Apache-2.0
"""When fit, evaluate and predict run whole epochs in the engine, and when and how they do not."""

import collections
import warnings

import history_cases
import keras
import numpy as np
import pytest
from history_cases import X
from history_cases import Y
from keras import layers as L
from keras import ops
from keras_tracefire.src import _epochs
from keras_tracefire.src import _steps

import tracefire
from tracefire import errors

ROWS = len(X)


@pytest.fixture
def calls(monkeypatch):
    """Counts engine calls: "epoch" for chunks of many steps, "batch" for single batches."""
    counts = collections.Counter()

    def counted(cls, method, name):
        original = getattr(cls, method)

        def call(self, *args, **kwargs):
            counts[name] += 1
            return original(self, *args, **kwargs)

        monkeypatch.setattr(cls, method, call)

    counted(_epochs.EpochRunner, "_run", "epoch")
    counted(_epochs.EpochRunner, "_run_rest", "rest")
    counted(_steps.Step, "prepared", "batch")
    counted(_steps.Step, "_record", "trace")
    return counts


def regression(model):
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def linear(units=1):
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((6,)), L.Dense(units)])


def test_quiet_epoch_is_one_call_and_one_for_the_rest(calls):
    model = history_cases.plain_model()
    model.fit(X, Y, batch_size=32, epochs=3, verbose=0)
    assert calls == {"epoch": 3, "rest": 3, "trace": 2}


def test_watched_epoch_is_a_few_calls(calls, capsys):
    model = history_cases.plain_model()
    model.fit(X, Y, batch_size=4, epochs=1, verbose=1)
    assert calls["epoch"] <= _epochs._UPDATES and calls["epoch"] > 1 and calls["batch"] == 0
    assert "52/52" in capsys.readouterr().out


def test_second_fit_does_not_trace_again(calls):
    model = history_cases.plain_model()
    for _ in range(2):
        model.fit(X, Y, batch_size=32, epochs=1, verbose=0)
    assert calls["trace"] == 2


def test_evaluate_and_predict_run_whole_epochs(calls):
    model = history_cases.plain_model()
    loss, accuracy = model.evaluate(X, Y, batch_size=100, verbose=0)
    logits = model.predict(X, batch_size=100, verbose=0)
    assert calls["batch"] == 0 and calls["epoch"] == 2 and calls["rest"] == 2
    direct = np.asarray(model(X))
    np.testing.assert_allclose(logits, direct, rtol=1e-5, atol=1e-6)
    right = (direct.argmax(-1) == Y).mean()
    assert accuracy == pytest.approx(right, abs=1e-6)
    shifted = direct - direct.max(-1, keepdims=True)
    log_prob = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    assert loss == pytest.approx(-log_prob[np.arange(ROWS), Y].mean(), rel=1e-5)


def test_predict_joins_structures_and_partial_batches():
    a = keras.Input((6,))
    model = keras.Model(a, {"double": L.Rescaling(2.0)(a), "sum": ops.sum(a, axis=1)})
    out = model.predict(X, batch_size=64, verbose=0)
    np.testing.assert_allclose(out["double"], 2 * X, rtol=1e-6)
    np.testing.assert_allclose(out["sum"], X.sum(1), rtol=1e-6)


class ManyResults(keras.Model):
    """Results of several ranks and dtypes, nested."""

    def __init__(self):
        super().__init__()
        self.dense = L.Dense(5, activation="tanh")

    def call(self, x):
        y = self.dense(x)
        return {
            "rank 1": ops.sum(y, axis=1),
            "pair": (y, [ops.cast(y > 0, "int64"), ops.reshape(y, (-1, 1, 5, 1))]),
            "flags": y > 0.1,
            "half": ops.cast(y, "float16"),
            "same": y,
            "one row a batch": ops.max(y, axis=0, keepdims=True),
        }


@pytest.mark.parametrize("batch", [1, 41, 64, 205, 300])
def test_predict_equals_predicting_batch_by_batch(calls, batch):
    keras.utils.set_random_seed(1)
    model = ManyResults()
    model.predict(X[:2], verbose=0)
    calls.clear()
    whole = model.predict(X, batch_size=batch, verbose=0)
    assert calls["batch"] == 0 and calls["epoch"] + calls["rest"] == 1 + (batch in (64,))
    watched = model.predict(X, batch_size=batch, verbose=1)
    batches = [model.predict_on_batch(X[i : i + batch]) for i in range(0, ROWS, batch)]
    streamed = model.predict(((X[i : i + batch],) for i in range(0, ROWS, batch)), verbose=0)
    for other in (watched, streamed):
        assert keras.tree.assert_same_structure(whole, other) is None
    results = [keras.tree.flatten(t) for t in (*batches, whole, watched, streamed)]
    for *parts, a, b, c in zip(*results):
        want = np.concatenate(parts)
        assert a.dtype == want.dtype and a.flags.writeable
        for got in (a, b, c):
            np.testing.assert_array_equal(got, want)


def test_predict_for_another_number_of_rows_traces_nothing_more(calls):
    model = history_cases.plain_model()
    model.predict(X[:64], batch_size=32, verbose=0)
    calls.clear()
    for rows in (32, 96, 160):
        direct = np.asarray(model(X[:rows]))
        got = model.predict(X[:rows], batch_size=32, verbose=0)
        np.testing.assert_allclose(got, direct, rtol=1e-5, atol=1e-6)
    assert calls == {"epoch": 3}


class TrainStep(keras.Model):
    """A training step of one's own: the loss of a batch twice, gradients from a tape."""

    def __init__(self):
        super().__init__()
        self.dense = L.Dense(1)
        self.seen = keras.metrics.Sum(name="seen")

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tracefire.GradientTape() as tape:
            loss = 2.0 * ops.mean(ops.square(self(x) - ops.reshape(y, (-1, 1))))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(grads, self.trainable_variables)
        self.seen.update_state(ops.ones((x.shape[0],)))
        return {"batch_loss": loss, "seen": self.seen.result()}


def test_custom_train_step_takes_the_fast_path(calls):
    model = TrainStep()
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    target = X.sum(1)
    model.fit(X, target, batch_size=41, epochs=1, verbose=0)
    history = model.fit(X, target, batch_size=41, epochs=4, verbose=0).history
    assert calls["batch"] == 0 and calls["epoch"] == 5
    assert history["batch_loss"][-1] < history["batch_loss"][0]
    assert history["seen"] == [ROWS] * 4


@pytest.mark.parametrize("custom", ["metric", "step", "results", "none"])
def test_logs_of_an_epoch_are_what_the_metrics_hold(custom):
    """The mean over the epoch, whoever wrote the step; and Python state counts when it is read."""
    state = {"scale": 1.0}

    class Model(keras.Sequential):
        if custom == "step":

            def train_step(self, data):
                return {name: 0.0 * value for name, value in super().train_step(data).items()}

        if custom == "results":

            def get_metrics_result(self):
                return {n: state["scale"] * v for n, v in super().get_metrics_result().items()}

    class Mean(keras.metrics.MeanAbsoluteError):
        if custom == "metric":

            def result(self):
                return state["scale"] * super().result()

    keras.utils.set_random_seed(1)
    model = Model([keras.Input((6,)), L.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=[Mean(name="mae")])
    target = np.arange(ROWS, dtype="float32")
    scales = {"mae": [1, 1, 1], "loss": [1, 1, 1]}
    for name in {"metric": ["mae"], "results": ["mae", "loss"]}.get(custom, []):
        scales[name] = [1, 2, 3]
    history = {"mae": [], "loss": []}
    for _ in range(3):
        for name, values in model.fit(X, target, batch_size=41, verbose=0).history.items():
            history[name] += values
        state["scale"] += 1.0
    for name, mean in [("mae", target.mean()), ("loss", (target**2).mean())]:
        np.testing.assert_allclose(history[name], np.multiply(scales[name], mean), rtol=1e-5)


def test_variables_made_while_tracing_get_their_initial_value_once():
    class Lazy(L.Layer):
        scale = None

        def call(self, x):
            if self.scale is None:
                self.scale = self.add_weight(shape=(), initializer="ones", name="scale")
            return x * self.scale

    inner = Lazy()
    with tracefire._core.TraceScope() as scope:
        x = scope.parameter((2,), "float32")
        inner.built = True
        function = scope.finish([inner.call(x)])
    inner.scale.assign(3.0)
    out = function(tracefire.tensor(np.array([1.0, 2.0], "float32")))
    np.testing.assert_allclose(out[0].numpy(), [3.0, 6.0])


# Leaving the fast path.


def test_batch_callback_runs_at_every_batch_and_is_announced(calls):
    model = history_cases.plain_model()
    batches = []
    hook = keras.callbacks.LambdaCallback(on_train_batch_end=lambda b, logs: batches.append(b))
    with pytest.warns(UserWarning, match="callback .LambdaCallback. runs at every batch"):
        model.fit(X, Y, batch_size=41, epochs=1, verbose=0, callbacks=[hook])
    assert batches == [0, 1, 2, 3, 4] and calls["batch"] == 5 and calls["epoch"] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the reason is given once
        model.fit(X, Y, batch_size=41, epochs=1, verbose=0, callbacks=[hook])


def test_batch_callback_sees_current_weights():
    model = regression(linear())
    seen = []
    hook = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda b, logs: seen.append(model.get_weights()[0].copy())
    )
    with pytest.warns(UserWarning):
        model.fit(X, X.sum(1), batch_size=41, verbose=0, shuffle=False, callbacks=[hook])
    assert len({w.tobytes() for w in seen}) == 5
    np.testing.assert_array_equal(seen[-1], model.get_weights()[0])


@pytest.mark.parametrize("callback", ["EarlyStopping", "ReduceLROnPlateau", "ModelCheckpoint"])
def test_epoch_callbacks_stay_on_the_fast_path(calls, callback, tmp_path):
    made = {
        "EarlyStopping": lambda: keras.callbacks.EarlyStopping("loss"),
        "ReduceLROnPlateau": lambda: keras.callbacks.ReduceLROnPlateau("loss"),
        "ModelCheckpoint": lambda: keras.callbacks.ModelCheckpoint(tmp_path / "m.keras"),
    }[callback]()
    history_cases.plain_model().fit(X, Y, epochs=2, verbose=0, callbacks=[made])
    assert calls["batch"] == 0 and calls["epoch"] == 2


def test_checkpoint_by_batches_goes_batch_by_batch(calls, tmp_path):
    saver = keras.callbacks.ModelCheckpoint(tmp_path / "m.keras", save_freq=2)
    with pytest.warns(UserWarning, match="ModelCheckpoint"):
        history_cases.plain_model().fit(X, Y, epochs=1, verbose=0, callbacks=[saver])
    assert calls["batch"] == 7


def test_step_that_reads_values_runs_eagerly_and_says_why(calls):
    class Peeks(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(1)
            self.big = 0

        def build(self, shape):
            self.dense.build(shape)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            logs = super().train_step(data)
            if float(logs["loss"]) > 0:
                self.big += 1
            return logs

    keras.utils.set_random_seed(1)
    model = regression(Peeks())
    with pytest.warns(UserWarning, match="cannot be traced .*TF-E0114"):
        model.fit(X, X.sum(1), batch_size=41, epochs=2, verbose=0, shuffle=False)
    assert model.big == 10 and calls["epoch"] == 0
    keras.utils.set_random_seed(1)
    traced = regression(keras.Sequential([keras.Input((6,)), L.Dense(1)]))
    traced.fit(X, X.sum(1), batch_size=41, epochs=2, verbose=0, shuffle=False)
    for a, b in zip(model.get_weights(), traced.get_weights()):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_run_eagerly_gives_the_same_weights(calls):
    weights = []
    for eager in (False, True):
        model = linear()
        model.compile(keras.optimizers.Adam(0.05), "mse", run_eagerly=eager)
        model.fit(X, X.sum(1), batch_size=50, epochs=2, verbose=0)
        weights.append(model.get_weights())
    assert calls["batch"] == 10
    for a, b in zip(*weights):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_generators_and_limited_steps_train(calls):
    def batches():
        while True:
            yield X[:20], X[:20].sum(1)

    model = regression(linear())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*batch by batch")  # streams are no surprise
        history = model.fit(batches(), steps_per_epoch=3, epochs=2, verbose=0).history
    assert len(history["loss"]) == 2 and calls["batch"] == 6 and calls["trace"] == 1


def test_data_that_does_not_fit_goes_batch_by_batch(calls, monkeypatch):
    def full(self, adapter):
        raise errors.make("ResourceExhausted", "[TF-E0203] 1 GiB was asked, 1 MiB is free")

    monkeypatch.setattr(_epochs.EpochData, "__init__", full)
    with pytest.warns(UserWarning, match="does not fit into the memory"):
        history_cases.plain_model().fit(X, Y, batch_size=41, epochs=1, verbose=0)
    assert calls["batch"] == 5


# Trouble.


def test_interrupt_keeps_the_steps_done(monkeypatch):
    model = regression(linear())
    model.fit(X, X.sum(1), batch_size=41, epochs=1, verbose=0)
    before = model.get_weights()
    original, count = _epochs.EpochRunner._run, []

    def interrupted(self, *args):
        count.append(1)
        out = original(self, *args)
        if len(count) == 2:
            raise KeyboardInterrupt
        return out

    monkeypatch.setattr(_epochs.EpochRunner, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, X.sum(1), batch_size=41, epochs=5, verbose=0)
    after = model.get_weights()
    assert np.isfinite(after[0]).all() and not np.array_equal(before[0], after[0])
    monkeypatch.undo()
    assert np.isfinite(model.fit(X, X.sum(1), verbose=0).history["loss"][0])


def test_zero_rows_are_refused():
    with pytest.raises(errors.InvalidArgumentError, match="TF-E0115.*no rows"):
        regression(linear()).fit(np.zeros((0, 6), "float32"), np.zeros((0,)), verbose=0)


@pytest.mark.parametrize("from_logits", [True, False])
def test_labels_out_of_range_are_refused(from_logits):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)
    model = history_cases.plain_model(loss=loss)
    with pytest.raises(IndexError, match="TF-E0301"):
        model.fit(X, Y + 1, verbose=0)


def test_shapes_that_do_not_match_name_both():
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 6"):
        regression(linear()).fit(np.zeros((4, 5), "float32"), np.zeros((4,)), verbose=0)


def test_nan_in_the_data_stays_visible():
    bad = X.copy()
    bad[3, 2] = np.nan
    history = regression(linear()).fit(bad, X.sum(1), epochs=1, verbose=0).history
    assert np.isnan(history["loss"][0])


# State.


def test_save_and_load(tmp_path):
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((6,)), L.Dense(8), L.BatchNormalization(), L.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    model.fit(X, Y, batch_size=41, epochs=1, verbose=0)
    model.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(
        model.predict(X, verbose=0), again.predict(X, verbose=0)
    )
    # The optimizer's state travels too: the next epoch is the same.
    losses = [
        m.fit(X, Y, batch_size=41, shuffle=False, verbose=0).history["loss"] for m in (model, again)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_weights_set_between_fits_are_used():
    model = regression(linear())
    model.fit(X, X.sum(1), verbose=0)
    model.set_weights([np.ones((6, 1), "float32"), np.zeros((1,), "float32")])
    assert model.evaluate(X, X.sum(1), verbose=0) == pytest.approx(0.0, abs=1e-10)


def test_variable_keeps_its_slot():
    model = regression(linear())
    slots = [v._slot for v in model.variables]
    model.fit(X, X.sum(1), epochs=2, verbose=0)
    model.set_weights(model.get_weights())
    assert [v._slot for v in model.variables] == slots


def test_variables_and_models_copy_and_pickle():
    import copy
    import pickle

    variable = keras.Variable(np.arange(3.0, dtype="float32"), name="v")
    for other in (copy.deepcopy(variable), pickle.loads(pickle.dumps(variable))):
        other.assign([5.0, 5.0, 5.0])
        np.testing.assert_array_equal(np.asarray(variable), [0, 1, 2])
        np.testing.assert_array_equal(np.asarray(other), [5, 5, 5])
    model = regression(linear())
    clone = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict(X, verbose=0), clone.predict(X, verbose=0))


def test_mixed_precision_scales_the_loss():
    keras.utils.set_random_seed(1)
    policy = keras.DTypePolicy("mixed_float16")
    model = keras.Sequential(
        [keras.Input((6,)), L.Dense(8, dtype=policy, activation="relu"), L.Dense(1, dtype=policy)]
    )
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01), 2.0**15)
    model.compile(optimizer, "mse")
    history = model.fit(X, X.sum(1), batch_size=41, epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert model.layers[0].kernel.dtype == "float32"
    # Each overflow halves the scale and skips the step; the other steps are counted.
    scale = float(optimizer.dynamic_scale.numpy())
    overflows = round(np.log2(2.0**15 / scale))
    assert int(optimizer.step_counter.numpy()) + overflows == 15


def compiling(hook):
    def compile_anew(self, *args, **kwargs):
        self.model.compile("adam", "mae", metrics=["mse"])

    return type("Compiling", (keras.callbacks.Callback,), {hook: compile_anew})()


@pytest.mark.parametrize("hook", ["on_train_begin", "on_epoch_begin", "on_epoch_end", "on_train_end"])
def test_a_callback_compiles_between_epochs(hook):
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
    history = model.fit(x, x[:, :1], epochs=3, batch_size=16, verbose=0, callbacks=[compiling(hook)])
    assert len(history.history["loss"]) == 3
    assert isinstance(model.optimizer, keras.optimizers.Adam)
    assert ("mse" in history.history) == (hook != "on_train_end")


@pytest.mark.parametrize("hook", ["on_train_batch_begin", "on_train_batch_end"])
def test_a_callback_that_compiles_within_an_epoch_is_refused(hook):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.ones((64, 4), "float32")
    with pytest.raises(ValueError, match=f"TF-E0502.*{hook}.*compile"):
        model.fit(x, x[:, :1], batch_size=16, verbose=0, callbacks=[compiling(hook)])


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_no_batch_of_a_generator_is_lost_to_building_the_model(steps):
    """However many steps there are an execution: Keras looks at that many batches beforehand."""
    seen = []

    class Sums(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="sums")
            self.total = self.add_weight(shape=(), initializer="zeros", name="total")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign_add(keras.ops.sum(y_true))

        def result(self):
            return self.total + 0

    def batches():
        for i in range(7):
            seen.append(i)
            yield np.ones((4, 6), "float32"), np.full((4, 1), 10.0**i, "float32")

    model = keras.Sequential([L.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=[Sums()], steps_per_execution=steps)
    history = model.fit(batches(), verbose=0).history
    assert history["sums"] == [4444444.0] and int(model.optimizer.iterations) == 7
    assert seen == list(range(7))
    unbuilt = keras.Sequential([L.Dense(1)])
    unbuilt.compile(steps_per_execution=steps)
    assert unbuilt.predict((x for x in batches()), verbose=0).shape == (28, 1)
