# SPDX-License-Identifier: Apache-2.0
"""Training loops that people write themselves, as in Keras's guides."""

import keras
import numpy as np
import pytest
from keras import layers, ops

import tracefire

RNG = np.random.default_rng(0)
X = RNG.random((64, 6), dtype="float32")
Y = (X[:, 0] > X[:, 1]).astype("int32")
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def small_model():
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((6,)), layers.Dense(8, "relu"), layers.Dropout(0.1), layers.Dense(2)])


APPLY = {
    "apply_gradients": lambda optimizer, grads, weights: optimizer.apply_gradients(zip(grads, weights)),
    "apply": lambda optimizer, grads, weights: optimizer.apply(grads, weights),
    "clipped": lambda optimizer, grads, weights: optimizer.apply([ops.clip(g, -1, 1) for g in grads], weights),
}


@pytest.mark.parametrize("apply", APPLY)
def test_a_loop_with_a_tape_learns(apply):
    model, optimizer = small_model(), keras.optimizers.Adam(0.05)
    accuracy, losses = keras.metrics.SparseCategoricalAccuracy(), []
    for _ in range(30):
        with tracefire.GradientTape() as tape:
            logits = model(X, training=True)
            loss = LOSS(Y, logits) + sum(model.losses)
        APPLY[apply](optimizer, tape.gradient(loss, model.trainable_weights), model.trainable_weights)
        accuracy.update_state(Y, logits)
        losses.append(float(loss))
    assert losses[-1] < 0.7 * losses[0] and 0.5 < float(accuracy.result()) <= 1


def test_a_stateless_loop_learns_and_leaves_the_model_alone():
    model, optimizer = small_model(), keras.optimizers.Adam(0.05)
    optimizer.build(model.trainable_variables)
    before = model.get_weights()
    weights = [v.value for v in model.trainable_variables]
    rest = [v.value for v in model.non_trainable_variables]
    state, losses = [v.value for v in optimizer.variables], []
    for _ in range(30):
        with tracefire.GradientTape() as tape:
            logits, rest = model.stateless_call(weights, rest, X, training=True)
            loss = LOSS(Y, logits)
        weights, state = optimizer.stateless_apply(state, tape.gradient(loss, weights), weights)
        losses.append(float(loss))
    assert losses[-1] < 0.7 * losses[0]
    for now, then in zip(model.get_weights(), before):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "AdamW", "Lion", "Adafactor", "Muon", "Nadam"])
def test_optimizers_of_keras_take_variables_of_tracefire(name):
    w = tracefire.Variable(np.full((3, 2), 2, "float32"), name="w")
    b = tracefire.Variable(np.full((2,), 2, "float32"), name="b")
    optimizer = getattr(keras.optimizers, name)(0.05)
    for _ in range(20):
        with tracefire.GradientTape() as tape:
            loss = ops.sum(ops.square(w)) + ops.sum(b * b)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b]))
    assert (w.numpy() < 1.9).all() and (b.numpy() < 1.99).all()
    assert int(optimizer.iterations) == 20


def test_gradients_reach_a_variable_that_is_the_input_of_a_model():
    model = small_model()
    x = tracefire.Variable(X)
    first = float(ops.mean(model(x)[:, 0]))
    for _ in range(5):
        with tracefire.GradientTape() as tape:
            score = ops.mean(model(x)[:, 0])
        x.assign_sub(ops.sign(tape.gradient(score, x)) * 0.1)
    assert float(score) < first
    pair = ops.stack([x, x])
    np.testing.assert_array_equal(pair[0], x.numpy())
    kernel = model.layers[0].kernel
    np.testing.assert_allclose(kernel + tracefire.Variable(np.ones((6, 8), "float32")), kernel.numpy() + 1)
    np.testing.assert_allclose(tracefire.Variable(np.ones((6, 8), "float32")) + kernel, kernel.numpy() + 1)


def test_two_models_against_each_other_train_in_one_step():
    class Pair(keras.Model):
        def __init__(self):
            super().__init__()
            self.maker = keras.Sequential([layers.Dense(6)])
            self.judge = keras.Sequential([layers.Dense(1)])
            self.seed = keras.random.SeedGenerator(1)

        def compile(self):
            super().compile()
            self.of_maker, self.of_judge = keras.optimizers.Adam(), keras.optimizers.Adam()
            self.loss_of = keras.losses.BinaryCrossentropy(from_logits=True)

        def call(self, x):
            return self.judge(x)

        def train_step(self, x):
            rows = ops.shape(x)[0]
            noise = keras.random.normal((rows, 4), seed=self.seed)
            truth = ops.concatenate([ops.ones((rows, 1)), ops.zeros((rows, 1))], 0)
            with tracefire.GradientTape() as tape:
                verdict = self.judge(ops.concatenate([x, self.maker(noise)], 0))
                judged = self.loss_of(truth, verdict)
            weights = self.judge.trainable_weights
            self.of_judge.apply_gradients(zip(tape.gradient(judged, weights), weights))
            with tracefire.GradientTape() as tape:
                fooled = self.loss_of(ops.ones((rows, 1)), self.judge(self.maker(noise)))
            weights = self.maker.trainable_weights
            self.of_maker.apply_gradients(zip(tape.gradient(fooled, weights), weights))
            return {"judge": judged, "maker": fooled}

    model = Pair()
    model.compile()
    model.maker(np.ones((1, 4), "float32"))
    model.judge(X)
    history = model.fit(X, batch_size=16, epochs=3, verbose=0).history
    assert model.train_function.eager_reason is None
    assert np.isfinite(history["judge"] + history["maker"]).all()
    assert int(model.of_maker.iterations) == int(model.of_judge.iterations) == 12


def test_single_batches_take_nested_lists():
    model = small_model()
    model.compile("sgd", LOSS, metrics=["accuracy"])
    rows, labels = X[:3].tolist(), Y[:3].tolist()
    as_lists = model.test_on_batch(rows, labels)
    np.testing.assert_allclose(as_lists, model.test_on_batch(X[:3], Y[:3]), rtol=1e-6)
    assert len(model.train_on_batch(rows, labels)) == 2
    np.testing.assert_allclose(model.predict_on_batch(rows), model.predict_on_batch(X[:3]), rtol=1e-6)
    with pytest.raises(tracefire.errors.Error, match=r"\[TF-E01"):
        model.train_on_batch([[1.0] * 6, [1.0] * 5], [0, 1])
