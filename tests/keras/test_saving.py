# SPDX-License-Identifier: Apache-2.0
"""Saved models carry the manifest of the process that made them, and load as before."""

import json
import zipfile

import keras
import numpy as np
import pytest

import tracefire

NAME = "assets/tracefire_manifest.json"


def model():
    inner = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    return keras.Sequential([keras.layers.Input((3,)), inner, keras.layers.Dense(1)])


def manifest_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(NAME))


def test_a_saved_model_has_the_manifest(tmp_path):
    keras.utils.set_random_seed(17)
    made = model()
    made.save(tmp_path / "m.keras")
    found = manifest_of(tmp_path / "m.keras")
    assert found["schema"] == "tracefire.manifest/1" and found["seed"] == 17
    assert found["tracefire"] == tracefire.manifest()["tracefire"]
    assert found["python"]["keras"] == keras.__version__
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(made.predict(x, verbose=0),
                                  keras.models.load_model(tmp_path / "m.keras").predict(x, verbose=0))


def test_checkpoints_have_it(tmp_path):
    made = model()
    made.compile("sgd", "mse")
    path = tmp_path / "c.keras"
    made.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0, callbacks=[keras.callbacks.ModelCheckpoint(path)])
    assert manifest_of(path)["schema"] == "tracefire.manifest/1"


def test_assets_of_a_model_of_ones_own_stay(tmp_path):
    @keras.saving.register_keras_serializable("test_saving")
    class Mine(keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.dense = keras.layers.Dense(1)
            self.words = None

        def call(self, x):
            return self.dense(x)

        def save_assets(self, folder):
            super().save_assets(folder)
            with open(f"{folder}/words.txt", "w") as file:
                file.write("a b")

        def load_assets(self, folder):
            with open(f"{folder}/words.txt") as file:
                self.words = file.read()

    made = Mine()
    made(np.ones((1, 2), "float32"))
    made.save(tmp_path / "m.keras")
    assert manifest_of(tmp_path / "m.keras")["schema"] == "tracefire.manifest/1"
    assert keras.models.load_model(tmp_path / "m.keras").words == "a b"


@pytest.mark.parametrize("name", ["w.weights.h5"])
def test_weights_alone_load_as_before(tmp_path, name):
    made = model()
    made.save_weights(tmp_path / name)
    other = model()
    other.load_weights(tmp_path / name)
    for a, b in zip(made.weights, other.weights):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


WRITERS = {
    "m.keras": lambda model, path: model.save(path),
    "n.keras": lambda model, path: keras.saving.save_model(model, str(path)),
    "m.h5": lambda model, path: model.save(path),
    "m.weights.h5": lambda model, path: model.save_weights(path),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.filterwarnings("ignore")
def test_a_model_that_cannot_be_saved_leaves_the_file_of_before(name, tmp_path):
    write = WRITERS[name]
    made, path = model(), tmp_path / name
    write(made, path)
    path.chmod(0o640)
    before = path.read_bytes()
    good = made.get_weights()
    bad = tracefire._core.ops.check_finite(tracefire.tensor(np.full((3, 2), np.nan, "float32")))
    made.layers[0].weights[0].assign(bad)
    with pytest.raises(tracefire.errors.InvalidArgumentError, match="check_finite"):
        write(made, path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [name]
    made.set_weights([w + 1 for w in good])
    link = tmp_path / f"link.{name}"
    link.symlink_to(path)
    write(made, link)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o640
    again = model()
    again.load_weights(path) if "weights" in name else None
    again = again if "weights" in name else keras.models.load_model(path)
    for got, want in zip(again.get_weights(), good, strict=True):
        np.testing.assert_array_equal(got, want + 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, link.name])


def test_what_is_no_single_file_is_saved_as_ever(tmp_path):
    made = model()
    made.save(tmp_path / "folder", zipped=False)
    assert (tmp_path / "folder" / "config.json").exists()
    made.save_weights(tmp_path / "m.weights.json", max_shard_size=0.1)
    assert (tmp_path / "m.weights.json").exists()
    with pytest.raises(ValueError, match="extension"):
        made.save(tmp_path / "m.txt")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "lion"])
def test_a_legacy_file_is_trained_on_where_it_was_left(optimizer, tmp_path):
    keras.utils.set_random_seed(1)
    made = model()
    made.compile(optimizer, keras.losses.MeanSquaredError())
    x, y = np.random.default_rng(0).random((2, 40, 3), dtype="float32")
    made.fit(x, y[:, :1], verbose=0)
    made.save(tmp_path / "m.h5")
    again = keras.models.load_model(tmp_path / "m.h5")
    for work in (
        lambda m: [np.array(v) for v in m.optimizer.variables],
        lambda m: m.fit(x, y[:, :1], verbose=0, shuffle=False, epochs=2).history["loss"],
        lambda m: m.get_weights(),
    ):
        for got, want in zip(work(again), work(made), strict=True):
            np.testing.assert_array_equal(got, want)
