# SPDX-License-Identifier: Apache-2.0
"""Numbers and labels in users' data that cannot be trained on are named with their row."""

import re
import warnings

import keras
import numpy as np
import pytest

from keras_tracefire.src import _data
from tracefire import errors

ROWS, CLASSES = 70, 3
X = np.random.default_rng(0).random((ROWS, 6), dtype="float32")
LABELS = (np.arange(ROWS) % CLASSES).astype("int64")


def classifier(from_logits=False, **options):
    last = keras.layers.Dense(CLASSES, None if from_logits else "softmax")
    model = keras.Sequential([keras.Input((6,)), last])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)
    model.compile("sgd", loss, metrics=["accuracy"], **options)
    return model


def regression():
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def with_value(array, row, value):
    array = array.copy()
    array[row] = value
    return array


def in_batches(*arrays):
    for start in range(0, ROWS, 10):
        yield tuple(a[start : start + 10] for a in arrays)


RUNS = {
    "fit": lambda model, x, y: model.fit(x, y, verbose=0),
    "fit with batches watched": lambda model, x, y: model.fit(
        x,
        y,
        verbose=0,
        callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)],
    ),
    "evaluate": lambda model, x, y: model.evaluate(x, y, verbose=0),
    "train_on_batch": lambda model, x, y: model.train_on_batch(x, y),
    "test_on_batch": lambda model, x, y: model.test_on_batch(x, y),
    "a tensor": lambda model, x, y: model.fit(x, keras.ops.convert_to_tensor(y), verbose=0),
}


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("label", [3_000_000_000, 2**40 + 1, -1, -(2**40), CLASSES])
@pytest.mark.parametrize("run", RUNS)
def test_a_label_without_a_class_is_named_with_its_row(run, label, from_logits):
    wrong = with_value(LABELS, 17, label)
    with pytest.raises(IndexError, match=r"TF-E0301") as caught:
        RUNS[run](classifier(from_logits), X, wrong)
    assert f"y, row 17: the label is {label}," in str(caught.value)
    assert "labels from 0 to 2" in str(caught.value)


def test_labels_in_columns_lists_and_dicts_of_outputs():
    with pytest.raises(IndexError, match="y, row 17: the label is 9,"):
        classifier().fit(X, with_value(LABELS, 17, 9)[:, None], verbose=0)
    with pytest.raises(IndexError, match="y, row 2: the label is 4,"):
        classifier().train_on_batch(X[:3], np.array([0, 1, 4]))
    inputs = keras.Input((6,))
    heads = {n: keras.layers.Dense(c, name=n)(inputs) for n, c in (("few", 3), ("many", 30))}
    model = keras.Model(inputs, heads)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with pytest.raises(IndexError, match=r"y\['many'\], row 4: the label is 30,"):
        model.fit(X, {"few": LABELS, "many": with_value(LABELS, 4, 30)}, verbose=0)


def test_labels_of_a_generator_are_named_with_their_batch():
    wrong = with_value(LABELS, 17, 3_000_000_000)
    with pytest.raises(IndexError, match="y, batch 1, row 7: the label is 3000000000,"):
        classifier().fit(in_batches(X, wrong), verbose=0)


def test_the_loss_alone_reports_the_label_as_it_is():
    scores = np.ones((ROWS, CLASSES), "float32")
    for from_logits in (False, True):
        with pytest.raises(IndexError, match="label 3000000000 is out of range; labels run from 0 to 2"):
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)
            float(loss(with_value(LABELS, 17, 3_000_000_000), scores))


@pytest.mark.parametrize("run", ["fit", "evaluate", "train_on_batch"])
@pytest.mark.filterwarnings("ignore:.*TF-E0302")
def test_a_label_that_is_no_number_is_an_error(run):
    wrong = with_value(LABELS.astype("float32"), 17, np.nan)
    with pytest.raises(errors.InvalidArgumentError, match="TF-E0302.*y, row 17: the label is nan"):
        RUNS[run](classifier(), X, wrong)
    with pytest.raises(errors.InvalidArgumentError, match="TF-E0302.*y, batch 1, row 7"):
        classifier().fit(in_batches(X, wrong), verbose=0)


def warned(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [w for w in caught if "TF-E0302" in str(w.message)]


TARGETS = X.sum(1)
ONES = np.ones(ROWS, "float32")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_that_are_not_finite_are_named_once(dtype, value):
    for name, data in {
        "x, row 3, element 2": (with_value(X, (3, 2), value), TARGETS, ONES),
        "y, row 5": (X, with_value(TARGETS, 5, value), ONES),
        "sample_weight, row 69": (X, TARGETS, with_value(ONES, 69, value)),
    }.items():
        x, y, weight = (a.astype(dtype) for a in data)
        model = regression()
        history = []
        [said] = warned(
            lambda: history.append(model.fit(x, y, sample_weight=weight, epochs=2, verbose=0))
        )
        assert f"[TF-E0302] {name}: the value is {value}" in str(said.message)
        assert said.filename == __file__  # the user's line
        assert not np.isfinite(history[0].history["loss"]).any()  # as in TensorFlow
        assert warned(lambda: model.evaluate(x, y, sample_weight=weight, verbose=0)) == []
        other = with_value(X, 0, value).astype(dtype)  # other data is named, too
        [said] = warned(lambda: model.fit(other, TARGETS, verbose=0))
        assert "x, row 0, element 0: the value is" in str(said.message)
        assert len(warned(lambda: regression().evaluate(x, y, sample_weight=weight, verbose=0))) == 1
        assert len(warned(lambda: regression().train_on_batch(x, y, weight))) == 1


def test_where_else_data_comes_from():
    bad, late = (with_value(TARGETS, row, np.nan) for row in (17, 57))
    for work, name in (
        (lambda: regression().fit(X, TARGETS, validation_data=(X, bad), epochs=2, verbose=0), "validation_data's y, row 17"),
        (lambda: regression().fit(X, late, validation_split=0.5, epochs=2, verbose=0), " y, row 57"),
        (lambda: regression().fit(in_batches(X, bad), verbose=0), "y, batch 1, row 7"),
        (lambda: regression().fit(X, bad, steps_per_epoch=2, verbose=0), "y, row 17"),
    ):
        [said] = warned(work)
        assert name in str(said.message)


def test_finite_numbers_are_no_cause_for_a_warning():
    large = np.full((ROWS, 6), 3e38, "float32")  # their sum overflows
    assert warned(lambda: regression().fit(large, TARGETS, verbose=0)) == []
    assert warned(lambda: regression().fit(X, TARGETS, verbose=0)) == []


def test_the_first_place_is_found_in_large_arrays():
    rng = np.random.default_rng(1)
    array = rng.random((5000, 700), dtype="float32")
    assert _data.first_not_finite(array) is None
    for index in (3_499_999, 1_700_001, 12):
        array.ravel()[index] = np.nan
        assert _data.first_not_finite(array) == index
    assert _data.first_not_finite(np.zeros((0, 3), "float32")) is None
    assert _data.first_not_finite(np.arange(4)) is None
    assert re.match("x", next(_data.leaves((array,)))[0])


@pytest.mark.parametrize("method", ["fit", "evaluate"])
def test_what_cannot_be_run_on_is_refused_by_the_name_of_the_argument(method):
    def call(*args, **options):
        return getattr(classifier(), method)(*args, verbose=0, **options)

    for wrong in (-1, 1.5, "32", True):
        with pytest.raises(errors.InvalidArgumentError, match=f"TF-E0502.*batch_size is {wrong!r}"):
            call(X, LABELS, batch_size=wrong)
    steps = "steps_per_epoch" if method == "fit" else "steps"
    for wrong in (-1, 1.5, "2"):
        with pytest.raises(errors.InvalidArgumentError, match=f"number of steps is {wrong!r}"):
            call(X, LABELS, **{steps: wrong})
        with pytest.raises(errors.InvalidArgumentError, match=f"number of steps is {wrong!r}"):
            classifier().predict(X, steps=wrong, verbose=0)
    call(X, LABELS, **{steps: 0})  # Keras's default
    with pytest.raises(errors.InvalidArgumentError, match="TF-E0502.*x is None"):
        call(None, LABELS)
    with pytest.raises(errors.InvalidArgumentError, match=f"TF-E0502.*`{method}` was called without y"):
        call(X)
    for array, kind in (
        (LABELS.astype(str), "texts"),
        (LABELS.astype(object), "Python objects"),
        (LABELS.astype("S"), "bytes"),
        (LABELS.astype("datetime64[s]"), "dates"),
    ):
        with pytest.raises(ValueError, match=f"TF-E0102.* y holds {kind}"):
            call(X, array)
        with pytest.raises(ValueError, match=f"TF-E0102.* validation_data's y holds {kind}"):
            classifier().fit(X, LABELS, validation_data=(X, array), verbose=0)
    with pytest.raises(errors.InvalidArgumentError, match="TF-E0502.* validation_data has no y"):
        classifier().fit(X, LABELS, validation_data=(X,), verbose=0)
    with pytest.raises(ValueError, match=r"TF-E0102.* x holds texts"):
        call(X.astype(str), LABELS)
    with pytest.raises(ValueError, match="TF-E0102.*holds texts"):
        keras.ops.convert_to_tensor(np.array(["a"]))
    with pytest.raises(errors.InvalidArgumentError, match="TF-E0502.*x is None"):
        classifier().predict(None, verbose=0)


def test_models_without_targets_are_trained():
    class Autoencoder(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = keras.layers.Dense(6)

        def call(self, x):
            y = self.layer(x)
            self.add_loss(keras.ops.mean(keras.ops.square(y - x)))
            return y

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return keras.ops.mean(keras.ops.square(y_pred - x))

    model = Autoencoder()
    model.compile("sgd", "mse")
    assert np.isfinite(model.fit(X, verbose=0).history["loss"]).all()
