# SPDX-License-Identifier: Apache-2.0
"""A step that fails on its data: the error is raised once, and the model has the state of the steps
before it, with which it goes on. The reference is a twin that never saw the bad step."""

import emulated_gpu
import keras
import numpy as np
import pytest

import tracefire
from tracefire import _core
from tracefire import errors

ROWS, BATCH, WORDS = 205, 20, 7  # ten batches of 20 rows and one of 5
X = np.random.default_rng(0).integers(0, WORDS, (ROWS, 4)).astype("int32")
Y = (X.sum(1) % 3).astype("int32")
L = keras.layers


class Touchy(L.Layer):
    """Passes numbers on through host code, which raises at the number 99."""

    calls = 0

    def call(self, x):
        (seen,) = _core.host_call(self.look, [x], [(tuple(x.shape), "float32")])
        return x + 0 * seen

    def look(self, x):
        Touchy.calls += 1
        if (x == 99).any():
            raise ValueError("no 99, please")
        return [x]

    def compute_output_shape(self, shape):
        return shape


class Checked(L.Layer):
    """Refuses numbers that are not finite."""

    def call(self, x):
        return _core.ops.check_finite(x)


def embedding(**options):
    keras.utils.set_random_seed(1)
    layers = [keras.Input((4,), dtype="int32"), L.Embedding(WORDS, 5), L.Flatten()]
    return compiled(layers + [L.Dropout(0.2, seed=3), L.BatchNormalization(), L.Dense(3)], **options)


def dense(layer, **options):
    keras.utils.set_random_seed(1)
    return compiled([keras.Input((4,)), layer, L.Dense(3)], **options)


def compiled(layers, optimizer=None, **options):
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    options = {"metrics": ["accuracy"], **options}
    model.compile(optimizer or keras.optimizers.Adam(0.01), loss, **options)
    return model


# How a step fails: the model, the bad value, what the message says.
FAULTS = {
    "an index": (embedding, 77, r"TF-E0301.*index 77 is out of range"),
    "a negative index": (embedding, -9, r"TF-E0301.*index -9 is out of range"),
    "host code": (lambda **o: dense(Touchy(), **o), 99, r"TF-E0304.*ValueError: no 99, please"),
    "a check": (lambda **o: dense(Checked(), **o), np.inf, r"TF-E0302.*'check_finite'"),
}


def batches(x, y):
    for at in range(0, len(x), BATCH):
        yield x[at : at + BATCH], y[at : at + BATCH]


def on_batches(model, x, y):
    for part in batches(x, y):
        model.train_on_batch(*part)


def fit(model, x, y, **options):
    return model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, **options)


def hook():
    """Runs at every batch of training and of testing."""
    callback = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)
    callback.on_test_batch_end = lambda batch, logs=None: None
    return callback


RUNS = {
    "fit": fit,
    "progress bar": lambda m, x, y: m.fit(x, y, batch_size=BATCH, shuffle=False, verbose=1),
    "batch callback": lambda m, x, y: fit(m, x, y, callbacks=[hook()]),
    "generator": lambda m, x, y: m.fit(batches(x, y), verbose=0),
    "train_on_batch": on_batches,
}
quiet = pytest.mark.filterwarnings("ignore")


def bad(value, row):
    x = X.astype(np.asarray(value).dtype if np.isinf(value) else X.dtype).copy()
    if np.isinf(value):
        x = x.astype("float32")
    x[row, 2] = value
    return x


def state(model):
    return [np.array(v) for v in model.variables + model.optimizer.variables]


def assert_same_state(model, twin):
    for got, want in zip(state(model), state(twin), strict=True):
        np.testing.assert_array_equal(got, want)


@quiet
@pytest.mark.parametrize("row", [7, 130, ROWS - 1])
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_model_keeps_the_steps_before_the_one_that_failed(fault, run, row, tmp_path):
    make, value, message = FAULTS[fault]
    model, twin = make(), make()
    good = row - row % BATCH  # rows of the steps before
    fit(model, X, Y)
    fit(twin, X, Y)
    Touchy.calls = 0
    with pytest.raises(errors.Error, match=message) as raised:
        RUNS[run](model, bad(value, row), Y)
    if fault == "host code":
        assert Touchy.calls == good // BATCH + 1  # nothing that is seen outside is done twice
    if run != "train_on_batch":
        assert f"batch {good // BATCH}" in str(raised.value)
    if "index" in fault:
        place = {"generator": f"{row - good} of the batch", "train_on_batch": row - good}.get(run, row)
        assert f"x, row {place}, element 2 is {value}" in str(raised.value)
    if good:
        RUNS[run](twin, X[:good], Y[:good])
    assert_same_state(model, twin)
    # It goes on as if nothing had been.
    np.testing.assert_array_equal(model.predict(X, verbose=0), twin.predict(X, verbose=0))
    assert model.evaluate(X, Y, verbose=0) == twin.evaluate(X, Y, verbose=0)
    model.save_weights(tmp_path / "m.weights.h5")
    assert fit(model, X, Y, epochs=2).history == fit(twin, X, Y, epochs=2).history
    assert_same_state(model, twin)


OPTIONS = {
    "steps_per_execution": {"steps_per_execution": 3},
    "run_eagerly": {"run_eagerly": True},
    "accumulation": {"optimizer": keras.optimizers.SGD(0.1, gradient_accumulation_steps=3)},
    "average": {"optimizer": keras.optimizers.SGD(0.1, use_ema=True, ema_overwrite_frequency=2)},
}


@quiet
@pytest.mark.parametrize("run", ["fit", "generator"])
@pytest.mark.parametrize("option", OPTIONS)
def test_whatever_the_model_was_compiled_with(option, run):
    options = OPTIONS[option]

    def make():
        model = embedding(**options)
        if "optimizer" in options:
            optimizer = options["optimizer"]
            optimizer = type(optimizer).from_config(optimizer.get_config())
            model.compile(optimizer, model.loss)
        return model

    model, twin = make(), make()
    with pytest.raises(errors.OutOfRangeError, match="index 77"):
        RUNS[run](model, bad(77, 130), Y)
    RUNS[run](twin, X[:120], Y[:120])
    for got, want in zip(state(model), state(twin), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    fit(model, X, Y)


@quiet
def test_a_shuffled_epoch_names_the_row_as_the_user_counts():
    model = embedding()
    with pytest.raises(errors.OutOfRangeError, match=r"in batch \d+, where x, row 130, element 2 is 77"):
        model.fit(bad(77, 130), Y, batch_size=BATCH, verbose=0)
    assert int(model.optimizer.iterations) < 11
    fit(model, X, Y)


OF_BATCH = "in batch 6, where x, row 10 of the batch, element 2 is 77"
IN_ARRAYS = "in batch 6, where x, row 130, element 2 is 77"


class Listening(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.seen = batch

    on_test_batch_end = on_predict_batch_end = on_train_batch_end


PLACES = {
    "fit": (lambda m, x, y: fit(m, x, y), IN_ARRAYS),
    "fit, batch by batch": (lambda m, x, y: fit(m, x, y, callbacks=[Listening()]), IN_ARRAYS),
    "fit on batches": (lambda m, x, y: m.fit(batches(x, y), verbose=0), OF_BATCH),
    "evaluate": (lambda m, x, y: m.evaluate(x, y, batch_size=BATCH, verbose=0), IN_ARRAYS),
    "evaluate on batches": (lambda m, x, y: m.evaluate(batches(x, y), verbose=0), OF_BATCH),
    "predict, batch by batch": (
        lambda m, x, y: m.predict(x, batch_size=BATCH, verbose=0, callbacks=[Listening()]),
        IN_ARRAYS,
    ),
    "predict": (
        lambda m, x, y: m.predict(x, batch_size=BATCH, verbose=0),
        "in batch 6, where x, row 130, element 2 is 77",
    ),
    "predict, watched": (
        lambda m, x, y: m.predict(x, batch_size=BATCH),
        "in batch 6, where x, row 130, element 2 is 77",
    ),
    "predict on batches": (lambda m, x, y: m.predict(((b,) for b, _ in batches(x, y)), verbose=0), "in batch 6"),
    "train_on_batch": (lambda m, x, y: m.train_on_batch(x, y), "in x, row 130, element 2 is 77"),
    "test_on_batch": (lambda m, x, y: m.test_on_batch(x, y), "in x, row 130, element 2 is 77"),
    "predict_on_batch": (lambda m, x, y: m.predict_on_batch(x), "in x, row 130, element 2 is 77"),
}


@quiet
@pytest.mark.parametrize("eagerly", [False, True])
@pytest.mark.parametrize("work", PLACES)
def test_a_row_is_one_of_the_users_arrays_or_of_the_batch(work, eagerly):
    run, place = PLACES[work]
    model = embedding(run_eagerly=eagerly)
    with pytest.raises(errors.OutOfRangeError) as raised:
        run(model, bad(77, 130), Y)
    assert place in str(raised.value)
    assert ("of the batch" in place) == ("of the batch" in str(raised.value))
    assert np.isfinite(model.predict(X, verbose=0)).all()


@quiet
def test_batches_of_shuffled_rows_count_within_themselves():
    model = embedding()
    with pytest.raises(errors.OutOfRangeError, match=r"batch \d+, where x, row 1?\d of the batch, element 2 is 77"):
        model.fit(bad(77, 130), Y, batch_size=BATCH, verbose=0, callbacks=[Listening()])


@quiet
def test_a_failed_evaluation_costs_nothing():
    model, twin = embedding(), embedding()
    fit(model, X, Y)
    fit(twin, X, Y)
    for work in (
        lambda x: model.evaluate(x, Y, verbose=0),
        lambda x: model.test_on_batch(x, Y),
        lambda x: model.predict(x, verbose=0),
        lambda x: model.evaluate(batches(x, Y), verbose=0),
    ):
        with pytest.raises(errors.OutOfRangeError, match="index 77"):
            work(bad(77, 130))
    assert model.evaluate(X, Y, verbose=0) == twin.evaluate(X, Y, verbose=0)
    with pytest.raises(errors.OutOfRangeError, match="index 77"):
        fit(model, X, Y, validation_data=(bad(77, 130), Y))
    fit(twin, X, Y)
    assert_same_state(model, twin)


@quiet
@pytest.mark.parametrize("run", ["fit", "run_eagerly", "batch callback"])
def test_rows_of_validation_are_not_taken_for_rows_of_training(run):
    model = embedding(run_eagerly=run == "run_eagerly")
    options = {"callbacks": [hook()]} if run == "batch callback" else {}
    options.update(batch_size=BATCH, verbose=0)
    x = bad(77, 130)
    place = r"in batch {} of the validation, where {}, row {}, element 2 is 77$"
    with pytest.raises(errors.Error, match=place.format(6, "validation_data's x", 130)):
        model.fit(X, Y, validation_data=(x, Y), **options)
    with pytest.raises(errors.Error, match=place.format((130 - ROWS // 2) // BATCH, "x", 130)):
        model.fit(x, Y, validation_split=0.5, **options)
    of_batch = r"validation_data's x, row 10 of the batch, element 2 is 77$"
    with pytest.raises(errors.Error, match=of_batch):
        model.fit(X, Y, validation_data=batches(x, Y), **options)
    labels = Y.copy()
    labels[130] = 5
    with pytest.raises(errors.Error, match=r" y, row 130: the label is 5"):
        model.fit(X, labels, validation_split=0.5, **options)
    with pytest.raises(errors.Error, match=r"y, batch 6 of the validation, row 10: the label is 5"):
        model.fit(X, Y, validation_data=batches(X, labels), **options)


@quiet
def test_a_loss_of_ones_own_may_fail_too():
    def loss(labels, logits):
        hot = keras.ops.take(keras.ops.eye(3), keras.ops.cast(labels, "int32"), axis=0)
        return keras.ops.mean((hot - logits) ** 2, axis=-1)

    model, twin = embedding(), embedding()
    labels = Y.copy()
    labels[150] = 5
    for m in (model, twin):
        m.compile("sgd", loss)
        fit(m, X, Y)
    with pytest.raises(errors.OutOfRangeError, match="batch 7, rows 140 to 159"):
        fit(model, X, labels)
    fit(twin, X[:140], Y[:140])
    assert_same_state(model, twin)


# Labels: seen beforehand.


@quiet
@pytest.mark.parametrize("value", [3, -1, 255, np.nan, np.inf, 2.0**40])
@pytest.mark.parametrize("run", ["fit", "progress bar", "batch callback"])
def test_labels_are_refused_before_the_first_step(run, value):
    labels = Y.astype("float32")
    labels[190] = value
    model = embedding()
    fit(model, X, Y)
    before = state(model)
    with pytest.raises(errors.Error, match=r"y, row 190: the label is"):
        RUNS[run](model, X, labels)
    with pytest.raises(errors.Error, match=r"validation_data's y, row 190: the label is"):
        fit(model, X, Y, validation_data=(X, labels))
    for got, want in zip(state(model), before, strict=True):
        np.testing.assert_array_equal(got, want)


@quiet
def test_labels_that_a_loss_leaves_out_are_none_to_refuse():
    labels = Y.copy()
    labels[::5] = 255
    model = embedding()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(True, ignore_class=255))
    fit(model, X, labels)
    labels[190] = 254
    with pytest.raises(errors.OutOfRangeError, match="y, row 190: the label is 254"):
        fit(model, X, labels)


@quiet
def test_labels_of_several_outputs_are_refused_by_name():
    inputs = keras.Input((4,))
    outputs = {"a": L.Dense(3, name="a")(inputs), "b": L.Dense(2, name="b")(inputs)}
    model = keras.Model(inputs, outputs)
    sparse = keras.losses.SparseCategoricalCrossentropy(True)
    model.compile("sgd", {"a": sparse, "b": sparse})
    targets = {"a": Y, "b": Y % 2}
    fit(model, X, targets)
    with pytest.raises(errors.OutOfRangeError, match=r"y\['b'\], row \d+: the label is 2"):
        fit(model, X, {"a": Y, "b": Y})


# What it costs.


@pytest.mark.slow
def test_an_epoch_that_goes_well_launches_and_waits_as_before():
    seen = emulated_gpu.run(
        """
keras.utils.set_random_seed(1)
x = np.random.default_rng(0).integers(0, 7, (205, 4)).astype("int32")
y = x.sum(1) % 3
L = keras.layers
model = keras.Sequential([keras.Input((4,), dtype="int32"), L.Embedding(7, 5), L.Flatten(), L.Dense(3)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
def fit(x, **more): return model.fit(x, y, batch_size=20, shuffle=False, verbose=0, **more).history["loss"]
fit(x)
core.synchronize()
core.reset_proof()
fit(x, epochs=3)
proof = core.proof()
costs = [proof.synchronizations, proof.runs, proof.graph_launches, proof.counted_copies]
wrong = x.copy()
wrong[130, 2] = 77
try:
    fit(wrong)
except IndexError as error:
    message = str(error)
after = int(model.optimizer.iterations)
weights = [w.tolist() for w in model.get_weights()]
answer([costs, message, after, fit(x), weights])
"""
    )
    costs, message, after, loss, weights = seen
    assert costs == [3, 0, 6, 0]
    assert "batch 6, where x, row 130, element 2 is 77" in message
    assert after == 4 * 11 + 6 and np.isfinite(loss).all()
    assert all(np.isfinite(w).all() for w in weights)


def test_a_savepoint_gives_back_what_variables_held():
    variables = [tracefire.Variable(np.full(3, i, "float32")) for i in range(2)]
    point = _core.Savepoint(variables)
    with pytest.raises(errors.Error, match="TF-E0502.*keep"):
        point.restore()
    point.keep()
    view = variables[0].numpy()
    variables[0].assign_add(np.ones(3, "float32"))
    point.check()
    point.restore()
    np.testing.assert_array_equal(variables[0].numpy(), view)
    with pytest.raises(errors.Error, match="TF-E0502"):
        point.restore()
    point.keep()
    variables[1].assign(_core.ops.check_finite(_core.tensor([1.0, np.nan, 2.0])))
    with pytest.raises(errors.InvalidArgumentError, match="check_finite"):
        point.check()
    point.restore()
    point.check()
    np.testing.assert_array_equal(variables[1].numpy(), [1, 1, 1])
    with pytest.raises(errors.Error, match="Savepoint takes a list of tracefire.Variable"):
        _core.Savepoint([3])
