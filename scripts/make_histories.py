#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the figures that tests/keras compares with: Keras on JAX, in full float32 precision.

    KERAS_BACKEND=jax python scripts/make_histories.py

needs keras, jax and scikit-learn. Run it when a case is added; the tests need none of the three but
Keras.
"""

import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parents[1] / "tests" / "keras"


def main():
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
    sys.path.insert(0, str(HERE))
    import history_cases
    import keras

    made_by = {"keras": keras.__version__, "jax": jax.__version__, "matmul_precision": "highest"}
    cases = {}
    for name, run in history_cases.CASES.items():
        cases[name] = run()
        print(name, cases[name])
    write("histories.json", {"made_by": made_by, "cases": cases})
    write(
        "digits_history.json",
        {"made_by": made_by, "history": history_cases.digits_history(*history_cases.digits())},
    )
    write("random.json", {"made_by": made_by, "draws": history_cases.random_numbers()})


def write(name, content):
    path = HERE / "data" / name
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print("wrote", path)


if __name__ == "__main__":
    main()
