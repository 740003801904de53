# SPDX-License-Identifier: Apache-2.0
"""Training runs whose histories must not depend on the Keras backend.

`scripts/make_histories.py` runs them under Keras on JAX and commits the figures;
`test_histories.py` runs them on Tracefire.
"""

import os
import tempfile

import keras
import numpy as np
from keras import callbacks as C
from keras import layers as L
from keras import ops

ROWS, FEATURES, CLASSES = 205, 6, 3
X = np.random.default_rng(0).random((ROWS, FEATURES)).astype("float32")
Y = np.random.default_rng(1).integers(0, CLASSES, ROWS)


def rich_model(steps_per_execution=1):
    """Dropout, batch statistics, a regularizer on activations, averaged weights, four metrics."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            L.Dense(8, activation="relu"),
            L.Dropout(0.3),
            L.BatchNormalization(),
            L.Dense(CLASSES, activation="softmax", activity_regularizer="l2"),
        ]
    )
    model.compile(
        keras.optimizers.Adam(0.01, use_ema=True),
        "sparse_categorical_crossentropy",
        metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2)],
        weighted_metrics=["accuracy"],
        steps_per_execution=steps_per_execution,
    )
    return model


def plain_model(optimizer="adam", loss=None, **kwargs):
    """Dense, Dropout, Dense on logits."""
    keras.utils.set_random_seed(5)
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            L.Dense(16, activation="relu", **kwargs),
            L.Dropout(0.2),
            L.Dense(CLASSES),
        ]
    )
    loss = loss or keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def _run(model, x=X, y=Y, **kwargs):
    kwargs = {"batch_size": 41, "epochs": 2, "verbose": 0, **kwargs}
    history = model.fit(x, y, **kwargs).history
    history = {name: [float(v) for v in values] for name, values in history.items()}
    history["weights"] = [float(sum(np.abs(w).sum() for w in model.get_weights()))]
    return history


def _rich(**kwargs):
    return lambda: _run(rich_model(), **kwargs)


def _checkpoint():
    path = os.path.join(tempfile.mkdtemp(), "best.keras")
    return _run(rich_model(), callbacks=[C.ModelCheckpoint(path)])


def _structures():
    keras.utils.set_random_seed(3)
    a, b = keras.Input((FEATURES,), name="a"), keras.Input((2,), name="b")
    hidden = L.Concatenate()([a, b])
    outputs = {"o": L.Dense(CLASSES, name="o")(hidden), "p": L.Dense(1, name="p")(hidden)}
    model = keras.Model({"a": a, "b": b}, outputs)
    losses = {"o": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "p": "mse"}
    model.compile("sgd", losses, loss_weights={"o": 1.0, "p": 0.2})
    return _run(model, {"a": X, "b": X[:, :2]}, {"o": Y, "p": X[:, :1]}, batch_size=50)


class _Scale(L.Layer):
    """A layer made of operations, with a weight and a seed of its own."""

    def __init__(self):
        super().__init__()
        self.seed = keras.random.SeedGenerator(11)

    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x, training=False):
        noise = keras.random.uniform(ops.shape(x), seed=self.seed)
        return x * self.gain + (noise * 0.1 if training else 0.0)


def _smooth(y_true, y_pred):
    """A loss made of operations."""
    hot = ops.one_hot(ops.cast(ops.reshape(y_true, (-1,)), "int32"), CLASSES) * 0.9 + 0.1 / CLASSES
    return -ops.sum(hot * ops.log_softmax(y_pred, axis=-1), axis=-1)


def _custom_layer_and_loss():
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.Input((FEATURES,)), L.Dense(8), _Scale(), L.Dense(CLASSES)])
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), _smooth, metrics=["accuracy"])
    return _run(model)


def _optimizer(make):
    return lambda: _run(plain_model(make()))


def _learning_rate_schedule():
    rate = keras.optimizers.schedules.ExponentialDecay(0.05, 3, 0.5)
    return _run(plain_model(keras.optimizers.Adam(rate)))


def _frozen_layer():
    model = plain_model()
    model.layers[0].trainable = False
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return _run(model)


def _evaluate_and_predict():
    model = rich_model()
    history = _run(model)
    history["evaluate"] = [float(v) for v in model.evaluate(X, Y, batch_size=60, verbose=0)]
    history["predict"] = [float(v) for v in model.predict(X, batch_size=60, verbose=0).sum(0)]
    return history


def _on_batch():
    model = rich_model()
    rows = [model.train_on_batch(X[:32], Y[:32]) for _ in range(2)]
    rows.append(model.test_on_batch(X[:32], Y[:32]))
    return {f"batch {i}": [float(v) for v in row] for i, row in enumerate(rows)}


CASES = {
    "plain": _rich(),
    "partial batch": _rich(batch_size=32),
    "batch larger than the data": _rich(batch_size=500),
    "no shuffle": _rich(shuffle=False),
    "batch shuffle": _rich(shuffle="batch"),
    "validation split": _rich(validation_split=0.2),
    "validation data and frequency": _rich(
        validation_data=(X[:40], Y[:40]), validation_freq=2, epochs=4
    ),
    "class weight": _rich(class_weight={0: 1.0, 1: 2.0, 2: 0.5}),
    "sample weight": _rich(sample_weight=np.linspace(0.1, 1, ROWS)),
    "initial epoch": _rich(initial_epoch=1, epochs=3),
    "early stopping": lambda: _run(
        rich_model(), epochs=5, callbacks=[C.EarlyStopping("loss", patience=0, min_delta=1)]
    ),
    "learning rate callback": lambda: _run(
        rich_model(), callbacks=[C.LearningRateScheduler(lambda epoch: 0.01 / (epoch + 1))]
    ),
    "checkpoint": _checkpoint,
    "steps per execution": lambda: _run(rich_model(3)),
    "batch hook": lambda: _run(
        rich_model(), callbacks=[C.LambdaCallback(on_train_batch_end=lambda batch, logs: None)]
    ),
    "float64 data": _rich(x=X.astype("float64")),
    "dict inputs and outputs": _structures,
    "custom layer and loss": _custom_layer_and_loss,
    "sgd with momentum and clipping": _optimizer(
        lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, global_clipnorm=0.5)
    ),
    "rmsprop": _optimizer(lambda: keras.optimizers.RMSprop(0.01, centered=True)),
    "adamw": _optimizer(lambda: keras.optimizers.AdamW(0.01, weight_decay=0.1)),
    "amsgrad": _optimizer(lambda: keras.optimizers.Adam(0.01, amsgrad=True)),
    "gradient accumulation": _optimizer(
        lambda: keras.optimizers.Adam(0.01, gradient_accumulation_steps=3)
    ),
    "averaged weights overwrite": _optimizer(
        lambda: keras.optimizers.SGD(0.1, use_ema=True, ema_overwrite_frequency=3)
    ),
    "learning rate schedule": _learning_rate_schedule,
    "kernel regularizer and constraint": lambda: _run(
        plain_model(kernel_regularizer="l2", kernel_constraint=keras.constraints.MaxNorm(1.0))
    ),
    "frozen layer": _frozen_layer,
    "evaluate and predict": _evaluate_and_predict,
    "single batches": _on_batch,
}


def digits_history(x, y, epochs=5):
    """The MLP on the scanned digits: NumPy weights, batches of 64 in order, no dropout.

    Args:
        x: [rows, 64] float32 in 0 to 1.
        y: [rows] labels 0 to 9.

    Returns:
        Loss and accuracy of each epoch.
    """
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((64,)),
            L.Dense(128, activation="relu"),
            L.Dense(64, activation="relu"),
            L.Dense(10),
        ]
    )
    rng = np.random.default_rng(42)
    weights = []
    for w in model.get_weights():
        limit = np.sqrt(6 / sum(w.shape)) if w.ndim == 2 else 0.0
        weights.append(rng.uniform(-limit, limit, w.shape).astype("float32"))
    model.set_weights(weights)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
    history = model.fit(x, y, batch_size=64, epochs=epochs, shuffle=False, verbose=0).history
    return {name: [float(v) for v in values] for name, values in history.items()}


def digits():
    """The digits that scikit-learn ships, scaled to 0 to 1."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return (data.data / 16.0).astype("float32"), data.target.astype("int32")


RANDOM_SHAPE = (7, 5)


def random_numbers():
    """Draws of every function of keras.random that has the same numbers on every device."""
    R = keras.random
    shape = RANDOM_SHAPE
    as_list = lambda x: np.asarray(keras.ops.convert_to_numpy(x), "float64").tolist()  # noqa: E731
    matrix = np.arange(35, dtype="float32").reshape(shape)
    draws = {
        "uniform": R.uniform(shape, seed=1),
        "uniform in a range": R.uniform(shape, -0.35, 0.8, seed=2),
        "uniform float16": R.uniform(shape, dtype="float16", seed=3),
        "uniform bfloat16": R.uniform(shape, dtype="bfloat16", seed=4),
        "normal": R.normal(shape, 1.0, 2.0, seed=5),
        "truncated normal": R.truncated_normal(shape, stddev=0.5, seed=6),
        "randint": R.randint(shape, -5, 100, seed=7),
        "randint of a large range": R.randint(shape, -(2**31), 2**31 - 1, seed=8),
        "randint uint8": R.randint(shape, 0, 256, dtype="uint8", seed=9),
        "categorical": R.categorical(np.log(matrix + 1.0), 6, seed=10),
        "dropout": R.dropout(matrix + 1.0, 0.4, seed=11),
        "dropout of rows": R.dropout(matrix + 1.0, 0.4, noise_shape=(7, 1), seed=12),
        "shuffle": R.shuffle(matrix, axis=0, seed=13),
        "shuffle of columns": R.shuffle(matrix, axis=1, seed=14),
    }
    generator = keras.random.SeedGenerator(99)
    for i in range(3):
        draws[f"seed generator {i}"] = R.uniform((4,), seed=generator)
    keras.utils.set_random_seed(21)
    for i in range(3):
        draws[f"global seed {i}"] = R.uniform((4,))
    names = "glorot_uniform he_normal lecun_normal random_normal truncated_normal variance_scaling"
    for name in names.split():
        keras.utils.set_random_seed(31)
        draws[f"initializer {name}"] = keras.initializers.get(name)(shape)
    return {name: as_list(value) for name, value in draws.items()}
