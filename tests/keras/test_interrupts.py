# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in a program of one's own: KeyboardInterrupt, and a model of whole steps that goes on."""

import os
import signal
import threading

import keras
import numpy as np
import pytest

ROWS = 64_000
X = np.ones((ROWS, 1), "float32")
Y = np.zeros((ROWS, 1), "float32")


def counting_model(**options):
    """Its weight grows by exactly 1 a step, as the optimizer's count of steps does."""
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), layer])
    model.compile(keras.optimizers.SGD(1.0), lambda y, p: -p, **options)
    return model


def weight_and_steps(model):
    return float(model.get_weights()[0][0, 0]), int(model.optimizer.iterations)


def control_c_while(work, seconds=0.5):
    """Presses once. Work that goes on all the same is ended after a minute, and the test with it."""
    press = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    signal.signal(signal.SIGALRM, _not_interrupted)
    signal.alarm(60)
    press.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.alarm(0)
        press.cancel()


def _not_interrupted(*_):
    raise TimeoutError("Ctrl-C was lost: the work went on for a minute")


def generator():
    while True:
        yield X[:32], Y[:32]


RUNS = {
    "whole epochs": ({}, lambda model: model.fit(X, Y, epochs=10_000, verbose=0)),
    "with a progress bar": ({}, lambda model: model.fit(X, Y, epochs=10_000, verbose=1)),
    "a generator": ({}, lambda model: model.fit(generator(), steps_per_epoch=10**9, verbose=0)),
    "run_eagerly": ({"run_eagerly": True}, lambda model: model.fit(X, Y, epochs=10_000, verbose=0)),
}


@pytest.mark.parametrize("run", RUNS)
def test_fit_is_interrupted_between_two_steps_and_goes_on(run):
    options, fit = RUNS[run]
    model = counting_model(**options)
    model.fit(X[:320], Y[:320], verbose=0)  # compiles
    assert weight_and_steps(model) == (10, 10)
    control_c_while(lambda: fit(model))
    weight, steps = weight_and_steps(model)
    # Operation by operation, Python may stop between the weight and the count of steps.
    assert steps > 10 and weight in ((steps, steps + 1) if "run_eagerly" in options else (steps,))
    model.fit(X[:320], Y[:320], epochs=2, verbose=0)
    assert weight_and_steps(model) == (weight + 20, steps + 20)
    model.evaluate(X[:320], Y[:320], verbose=0)
    np.testing.assert_allclose(model.predict(X[:3], verbose=0), [[weight + 20]] * 3)


def test_evaluate_and_predict_are_interrupted_too():
    model = counting_model()
    for work in (
        lambda: [model.evaluate(X, Y, verbose=0, batch_size=1) for _ in range(1000)],
        lambda: [model.predict(X, verbose=0, batch_size=1) for _ in range(1000)],
    ):
        control_c_while(work, 1.0)
        assert weight_and_steps(model) == (0, 0)


class Swallowing(keras.layers.Layer):
    """Presses Ctrl-C in its first call after `armed` and loses it, as optree may."""

    armed = False

    def call(self, x):
        if self.armed:
            self.armed = False
            try:
                signal.raise_signal(signal.SIGINT)
            except:  # noqa: E722
                pass
        return x


@pytest.mark.parametrize("work", ["fit", "evaluate", "predict"])
def test_an_interrupt_that_is_swallowed_within_a_step_ends_the_work_after_it(work):
    swallowing = Swallowing()
    model = keras.Sequential([keras.Input((1,)), swallowing, keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    seen = []
    watch = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    arguments = {"fit": (X[:64], Y[:64]), "evaluate": (X[:64], Y[:64]), "predict": (X[:64],)}[work]
    more = {"callbacks": [watch]} if work == "fit" else {}
    swallowing.armed = True
    with pytest.raises(KeyboardInterrupt):
        getattr(model, work)(*arguments, batch_size=8, verbose=0, **more)
    assert not swallowing.armed and seen == []
    getattr(model, work)(*arguments, batch_size=8, verbose=0)  # goes on, and is not interrupted again
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class PressedWhileBuilt(keras.optimizers.Adam):
    """Presses Ctrl-C after Keras calls it built, before its own variables are made."""

    presses = 1

    def build(self, variables):
        def pressing(*arguments, **options):
            while type(self).presses:
                type(self).presses -= 1
                signal.raise_signal(signal.SIGINT)
            return add(*arguments, **options)

        add, self.add_optimizer_variables = self.add_optimizer_variables, pressing
        super().build(variables)


@pytest.mark.parametrize("work", ["fit", "train_on_batch"])
def test_what_is_being_built_is_built_before_an_interrupt_comes(work):
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
    PressedWhileBuilt.presses = 1
    model.compile(PressedWhileBuilt(), "mse")
    with pytest.raises(KeyboardInterrupt):
        getattr(model, work)(X[:64], Y[:64])
    assert PressedWhileBuilt.presses == 0
    model.fit(X[:64], Y[:64], batch_size=8, verbose=0)
    assert int(model.optimizer.iterations) == 8
    assert len({v.path for v in model.optimizer.variables}) == len(model.optimizer.variables) == 2 + 2 * 4
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_press_does_not_wait():
    class Slow(keras.layers.Layer):
        def build(self, shape):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("the second press was held back")

    model = keras.Sequential([Slow(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:64], Y[:64], verbose=0)


def test_a_handler_of_the_programs_own_stays():
    model = counting_model()
    calls = []
    signal.signal(signal.SIGINT, lambda *_: calls.append(1))
    try:
        press = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: signal.raise_signal(signal.SIGINT)
        )
        model.fit(X[:320], Y[:320], epochs=2, verbose=0, callbacks=[press])
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert calls == [1, 1]
