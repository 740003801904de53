#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes keras.json beside it, which the C++ tests of tests/nn compare with: Keras on JAX, in full
float32 precision.

    KERAS_BACKEND=jax python tests/nn/data/make_values.py

needs keras, jax and scikit-learn. Data and first weights come from seeds, which give the same numbers
there and here, so that only results are kept.
"""

import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax  # noqa: E402

jax.config.update("jax_default_matmul_precision", "highest")
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import initializers as I  # noqa: E402
from keras import layers as L  # noqa: E402

SHAPE = (7, 5)


def flat(x):
    return np.asarray(keras.ops.convert_to_numpy(x), "float64").reshape(-1).tolist()


def draws():
    inputs = np.arange(1, 36, dtype="float32").reshape(SHAPE)
    drop, generator = L.Dropout(0.4, seed=11), keras.random.SeedGenerator(99)
    return {
        "glorot_uniform": flat(I.GlorotUniform(seed=7)(SHAPE)),
        "he_uniform": flat(I.HeUniform(seed=8)(SHAPE)),
        "he_normal": flat(I.HeNormal(seed=9)(SHAPE)),
        "glorot_uniform of a window": flat(I.GlorotUniform(seed=7)((2, 3, 4))),
        "uniform": flat(I.RandomUniform(-0.3, 0.2, seed=10)(SHAPE)),
        "keys": [flat(generator.next()) for _ in range(3)],
        "dropout": [flat(drop(inputs, training=True)) for _ in range(2)],
    }


def scores(rows, classes, seed):
    return keras.random.uniform((rows, classes), -3.0, 3.0, seed=seed)


def losses():
    y, logits = np.array([0, 3, 1, 2, 2, 0], "int32"), scores(6, 4, 21)
    p = keras.ops.softmax(logits)
    target = keras.random.uniform((6, 4), seed=22)
    target = target / keras.ops.sum(target, axis=-1, keepdims=True)
    hard = np.eye(4, dtype="float32")[y]  # probabilities of exactly 0 and 1
    out = {}
    for name, cls, truth in [
        ("sparse", keras.losses.SparseCategoricalCrossentropy, y),
        ("categorical", keras.losses.CategoricalCrossentropy, target),
    ]:
        for from_logits, prediction in [(True, logits), (False, p), (False, hard)]:
            key = f"{name} {'logits' if from_logits else 'certain' if prediction is hard else 'p'}"
            out[key] = flat(cls(from_logits=from_logits, reduction=None)(truth, prediction))
            out[key + " mean"] = float(cls(from_logits=from_logits)(truth, prediction))
    out["mse"] = flat(keras.losses.MeanSquaredError(reduction=None)(target, logits))
    column = logits[:, :1]
    out["mse of a column"] = flat(keras.losses.MeanSquaredError(reduction=None)(target[:, 0], column))
    return out


def metrics():
    out = {}
    for name, metric, truth in [
        ("sparse", keras.metrics.SparseCategoricalAccuracy(), lambda s: labels(9, 4, s)),
        ("categorical", keras.metrics.CategoricalAccuracy(), lambda s: scores(9, 4, s)),
        ("mse", keras.metrics.MeanSquaredError(), lambda s: scores(9, 4, s)),
    ]:
        figures = []
        for seed in (31, 33):
            metric.update_state(truth(seed), scores(9, 4, seed + 1))
            figures.append(float(metric.result()))
        out[name] = figures
    return out


def labels(rows, classes, seed):
    return np.asarray(keras.random.uniform((rows,), seed=seed) * classes).astype("int32")


def optimizers():
    makers = {
        "sgd": lambda: keras.optimizers.SGD(0.1),
        "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
        "nesterov": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        "adam": lambda: keras.optimizers.Adam(0.01),
        "adam of other decays": lambda: keras.optimizers.Adam(
            0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-3
        ),
    }
    out = {}
    for name, make in makers.items():
        optimizer, value = make(), keras.Variable(scores(3, 2, 41))
        steps = []
        for step in range(4):
            optimizer.apply([scores(3, 2, 50 + step)], [value])
            steps.append(flat(value))
        out[name] = steps
    return out


def small_model(optimizer, dropout=0.3):
    model = keras.Sequential(
        [
            keras.Input((6,)),
            L.Dense(16, activation="relu", kernel_initializer=I.GlorotUniform(seed=61)),
            L.Dropout(dropout, seed=62),
            L.Dense(3, kernel_initializer=I.GlorotUniform(seed=63)),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def run(model, x, y, **kwargs):
    kwargs = {"epochs": 3, "shuffle": False, "verbose": 0, **kwargs}
    history = model.fit(x, y, **kwargs).history
    history = {name: [float(v) for v in values] for name, values in history.items()}
    history["weights"] = [float(np.abs(w).sum()) for w in model.get_weights() if w.dtype == "float32"]
    return history


def small_fits():
    x, y = np.asarray(keras.random.uniform((205, 6), seed=71)), labels(205, 3, 72)
    held = (np.asarray(keras.random.uniform((50, 6), seed=73)), labels(50, 3, 74))
    adam, momentum = keras.optimizers.Adam, keras.optimizers.SGD
    model = small_model(adam(0.01))
    out = {
        "full batches": run(model, x, y, batch_size=41),
        "partial batch": run(small_model(adam(0.01)), x, y, batch_size=32),
        "one batch": run(small_model(adam(0.01)), x, y, batch_size=500),
        "momentum": run(small_model(momentum(0.1, momentum=0.9)), x, y, batch_size=32),
        "validation": run(
            small_model(adam(0.01)), x, y, batch_size=32, validation_data=held
        ),
    }
    out["evaluate"] = [float(v) for v in model.evaluate(*held, batch_size=32, verbose=0)]
    out["predict"] = flat(model.predict(held[0], batch_size=32, verbose=0))
    return out


def digits_fit(optimizer):
    """The demo's network, from seeds, in the order of the file."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x, y = (x / 16.0).astype("float32"), y.astype("int32")
    test = np.arange(len(x)) % 5 == 0
    model = keras.Sequential(
        [
            keras.Input((64,)),
            L.Dense(128, activation="relu", kernel_initializer=I.GlorotUniform(seed=81)),
            L.Dropout(0.2, seed=82),
            L.Dense(64, activation="relu", kernel_initializer=I.GlorotUniform(seed=83)),
            L.Dense(10, activation="softmax", kernel_initializer=I.GlorotUniform(seed=84)),
        ]
    )
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = run(model, x[~test], y[~test], batch_size=64, epochs=5)
    history["evaluate"] = [float(v) for v in model.evaluate(x[test], y[test], verbose=0)]
    return history


def main():
    values = {
        "made_by": {
            "keras": keras.__version__,
            "jax": jax.__version__,
            "matmul_precision": "highest",
        },
        "draws": draws(),
        "losses": losses(),
        "metrics": metrics(),
        "optimizers": optimizers(),
        "fits": small_fits(),
        "digits": {
            "adam": digits_fit("adam"),
            "momentum": digits_fit(keras.optimizers.SGD(0.05, momentum=0.9)),
        },
    }
    path = pathlib.Path(__file__).parent / "keras.json"
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    print("wrote", path)


if __name__ == "__main__":
    main()
