# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on real scanned digits through unmodified Keras, and says where it ran.

usage: python -m tracefire.demo [--epochs N] [--batch N] [--seed N] [--json FILE]

The 1,797 digits of 8 x 8 pixels that scikit-learn ships (UCI Optical Recognition of Handwritten
Digits); every fifth row is kept for the test. Talk goes to stderr, results to stdout; the last two
lines are `accuracy 0.NNNN` and `verdict WORD`. Exits 1 below an accuracy of 0.95 or without a
verdict, and says why; 130 where Ctrl-C ended it.
"""

import argparse
import json
import os
import sys

os.environ["KERAS_BACKEND"] = "tracefire"

import keras_tracefire  # noqa: E402, F401
import tracefire  # noqa: E402
from tracefire import _core  # noqa: E402
from tracefire import errors  # noqa: E402

LEAST_ACCURACY = 0.95
VERDICTS = ("on-gpu", "partly-on-gpu", "on-cpu")


def say(text=""):
    print(text, file=sys.stderr, flush=True)


def load_digits():
    """Rows [n, 64] f32 in 0 … 1 and labels [n] i32: train and test, which share no row."""
    import numpy as np
    from sklearn.datasets import load_digits as load

    x, y = load(return_X_y=True)
    x, y = (x / 16.0).astype("float32"), y.astype("int32")
    test = np.arange(len(x)) % 5 == 0
    return x[~test], y[~test], x[test], y[test]


class Bar:
    """One line a tenth of the work; on a terminal, a bar that moves."""

    def __init__(self, epochs):
        self.epochs, self.done, self.last = epochs, 0, ""
        self.moves = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, epoch, logs):
        done = self.done = epoch + 1
        self.last = f"loss {logs['loss']:.4f}  accuracy {logs['accuracy']:.4f}"
        text = f"epoch {done:3d}/{self.epochs}  {self.last}"
        if self.moves:
            width = 30 * done // self.epochs
            end = "\n" if done == self.epochs else ""
            print(f"\r[{'#' * width:30}] {text}", end=end, file=sys.stderr, flush=True)
        elif done % max(self.epochs // 10, 1) == 0:
            say(text)

    def say_interrupted(self):
        """After Ctrl-C: the code, how far it came and what became of the weights."""
        if self.moves and 0 < self.done < self.epochs:
            say()  # ends the bar's line
        text = errors.text_of(
            "Cancelled",
            f"Ctrl-C: finished {self.done} of {self.epochs} epochs",
            "the end of the training",
            "The weights were those of the last whole step, and end with this program, which saves "
            "none; a program of your own goes on from them after `except KeyboardInterrupt`",
        )
        say(f"tracefire: interrupted: {text}")
        if self.done:
            say(self.last)


def train(epochs, batch, seed, bar):
    """Returns (accuracy on the test rows, sizes, figures of each epoch)."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(seed)
    x, y, x_test, y_test = load_digits()
    model = keras.Sequential(
        [
            keras.Input((64,)),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    watch = keras.callbacks.LambdaCallback(on_epoch_end=bar.show)
    history = model.fit(x, y, batch_size=batch, epochs=epochs, verbose=0, callbacks=[watch]).history
    _, accuracy = model.evaluate(x_test, y_test, batch_size=batch, verbose=0)
    sizes = {"train": len(x), "test": len(x_test), "pixels": 64, "classes": 10}
    rows = [{name: float(values[i]) for name, values in history.items()} for i in range(epochs)]
    return float(accuracy), sizes, rows


def whole_number(least, most):
    """Reads a number as people write it: no sign, no blanks, no underscores."""

    def read(text):
        if text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text[:50]!r} was given. A whole number of {least} to {most} was expected.")

    return read


def file_name(text):
    if text in ("", "-") or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} was given. The name of a file was expected.")
    return text


def write(path, result):
    """As a whole or not at all: beside a file of before, which is then replaced."""
    path = os.path.realpath(path)
    whole = os.path.isfile(path) or not os.path.exists(path)  # and no device or pipe
    at = path + ".new" if whole and os.access(os.path.dirname(path), os.W_OK) else path
    try:
        with open(at, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
        if at != path:
            os.replace(at, path)
    except OSError:
        if at != path and os.path.exists(at):
            os.unlink(at)
        raise


def check_output(path):
    """Raises OSError where write() would, and leaves everything as it is."""
    there = os.path.lexists(path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o666))
    if not there:
        os.unlink(path)


def cannot_write(path, problem):
    shown = path[:200].encode("utf-8", "backslashreplace").decode()
    say(
        f"tracefire: error: [TF-E0404] the file {shown} cannot be written: {problem.strerror}. "
        "A place that this user may write to was expected."
    )
    return 1


def say_what_is_missing(accuracy, verdict):
    """Why the exit status is 1."""
    if not accuracy >= LEAST_ACCURACY:
        say(
            f"tracefire: the accuracy {accuracy:.4f} is below {LEAST_ACCURACY}, so the exit status is 1. "
            "More epochs help: 40 are enough (--epochs 40)."
        )
    if verdict not in VERDICTS:
        say(f"tracefire: the verdict {verdict!r} does not say where the work was done, so the exit status is 1.")


def main(arguments=None):
    bar = Bar(0)
    try:
        return run(arguments, bar)
    except KeyboardInterrupt:
        bar.say_interrupted()
        return 130


def run(arguments, bar):
    parser = argparse.ArgumentParser(
        prog="python -m tracefire.demo", description=__doc__.splitlines()[0], allow_abbrev=False
    )
    most = 2**31 - 1
    parser.add_argument("--epochs", type=whole_number(1, most), default=40, metavar="N")
    parser.add_argument("--batch", type=whole_number(1, most), default=64, metavar="N")
    parser.add_argument("--seed", type=whole_number(0, 2**32 - 1), default=1, metavar="N")
    parser.add_argument("--json", type=file_name, metavar="FILE", help="also write the result there")
    options = parser.parse_args(arguments)
    if options.json is not None:
        try:
            check_output(options.json)  # not after minutes of training
        except OSError as problem:
            return cannot_write(options.json, problem)

    say("devices: " + ", ".join(_core.list_devices()))
    reason = _core.why_no_gpu()
    if reason:
        say("no GPU is used: " + reason)
    _core.reset_proof()
    bar.epochs = options.epochs
    accuracy, sizes, history = train(options.epochs, options.batch, options.seed, bar)
    proof = _core.proof()
    report = json.loads(proof.json())
    print(proof)
    failed = 0
    if options.json is not None:
        result = {
            "schema": "tracefire.demo/1",
            "accuracy": round(accuracy, 4),
            "verdict": report["verdict"],
            "sizes": sizes,
            "epochs": options.epochs,
            "batch": options.batch,
            "devices": _core.list_devices(),
            "why_no_gpu": reason,
            "history": history,
            "proof": report,
            "manifest": tracefire.manifest(seed=options.seed),
        }
        try:
            write(options.json, result)
        except OSError as problem:
            failed = cannot_write(options.json, problem)
    print(f"accuracy {accuracy:.4f}")
    print(f"verdict {report['verdict']}", flush=True)
    say_what_is_missing(accuracy, report["verdict"])
    return failed if accuracy >= LEAST_ACCURACY and report["verdict"] in VERDICTS else 1


if __name__ == "__main__":
    sys.exit(main())
