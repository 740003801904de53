# SPDX-License-Identifier: Apache-2.0
"""How an unmodified Keras finds the backend, each way in a Python of its own."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import tracefire

ROOT = pathlib.Path(__file__).parents[2]
# Where the packages under test lie: build/python or site-packages.
PACKAGES = str(pathlib.Path(tracefire.__file__).parents[1])


def python(code, backend=None, site=None, **more):
    """Runs `code`; returns what it printed."""
    env = {k: v for k, v in os.environ.items() if k not in ("KERAS_BACKEND", "PYTHONPATH")}
    env.update(more)
    if backend:
        env["KERAS_BACKEND"] = backend
    code = textwrap.dedent(code)
    if site:
        # What Python does for a site-packages directory at its start.
        code = f"import site; site.addsitedir({site!r})\n" + code
    code = f"import sys; sys.path.insert(0, {PACKAGES!r})\n" + code
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def site_packages(tmp_path):
    """A directory with the wheel's `.pth` file."""
    (tmp_path / "tracefire.pth").write_text((ROOT / "python" / "tracefire.pth").read_text())
    return str(tmp_path)


def test_pth_file_makes_the_variable_enough(site_packages):
    out = python(
        "import keras; print(keras.backend.backend(), keras.config.backend())",
        backend="tracefire",
        site=site_packages,
    )
    assert out == "tracefire tracefire"


SET_INSIDE = """
    import os
    os.environ["KERAS_BACKEND"] = "tracefire"
    {first}
    import keras
    print(keras.backend.backend(), type(keras.ops.add(1.0, 2.0)).__module__)
"""


@pytest.mark.parametrize("first", ["", "import tracefire", "from tracefire import GradientTape"])
def test_a_program_may_set_the_variable_itself(site_packages, first):
    assert python(SET_INSIDE.format(first=first), site=site_packages) == "tracefire tracefire._core"
    # The environment may ask for another backend first.
    out = python(SET_INSIDE.format(first=first), backend="jax", site=site_packages)
    assert out == "tracefire tracefire._core"


def test_without_the_pth_file_importing_tracefire_first_is_enough():
    assert python(SET_INSIDE.format(first="import tracefire")) == "tracefire tracefire._core"
    before = "import tracefire" + SET_INSIDE.format(first="")
    assert python(textwrap.dedent(before.replace("\n    ", "\n"))) == "tracefire tracefire._core"


@pytest.mark.parametrize("where", ["KERAS_HOME", "HOME"])
def test_keras_json_chooses_the_backend(site_packages, tmp_path, where):
    home = tmp_path if where == "KERAS_HOME" else tmp_path / ".keras"
    home.mkdir(exist_ok=True)
    (home / "keras.json").write_text('{"backend": "tracefire", "floatx": "float32"}')
    code = "import keras; print(keras.backend.backend())"
    assert python(code, site=site_packages, **{where: str(tmp_path)}) == "tracefire"
    assert python(code, site=site_packages, KERAS_BACKEND="", **{where: str(tmp_path)}) == "tracefire"
    assert python("import tracefire; " + code, **{where: str(tmp_path)}) == "tracefire"
    for other in ('{"backend": "jax"}', "{", "[]", '{"floatx": "tracefire"', "\0"):
        (home / "keras.json").write_text(other)
        watch = "import tracefire_keras; print(tracefire_keras.is_wanted())"
        assert python(watch, **{where: str(tmp_path)}) == "False"


def test_the_pth_file_costs_next_to_nothing_and_imports_no_package(site_packages):
    """Counted, not timed: what is imported, opened and listed besides the line itself."""
    code = """
        import sys
        line = open({path!r}).read()
        events = []
        sys.addaudithook(lambda event, _: events.append(event))
        exec(line)
        count = [sum(e == name for e in events) for name in ("open", "os.listdir", "os.scandir", "subprocess.Popen")]
        print(*count)
        names = ("keras", "tracefire_keras", "keras_tracefire", "tracefire", "numpy", "ast")
        print([m for m in names if m in sys.modules])
    """
    path = os.path.join(site_packages, "tracefire.pth")
    counts, names = python(code.format(path=path)).splitlines()
    assert names == "[]"
    *files, programs = map(int, counts.split())
    assert sum(files) <= 1 and programs == 0, counts


@pytest.mark.parametrize("backend", [None, "numpy"])
def test_pth_file_does_nothing_for_other_backends(site_packages, backend):
    out = python(
        "import this; "
        "print(any(m.partition('.')[0] in ('keras_tracefire', 'tracefire') for m in sys.modules))",
        backend=backend,
        site=site_packages,
    )
    assert out.splitlines()[-1] == "False"


def test_other_backends_stay_themselves_with_the_hook_installed():
    pytest.importorskip("jax", reason="Keras's own numpy backend imports jax")
    code = """
        import keras_tracefire, keras, numpy as np
        print(keras.backend.backend(), type(keras.ops.add(1.0, 2.0)).__module__)
    """
    assert python(code, backend="numpy") == "numpy numpy"


def test_import_by_hand_needs_no_variable():
    out = python("import keras_tracefire, keras; print(keras.backend.backend())")
    assert out == "tracefire"


def test_import_after_keras_is_refused():
    pytest.importorskip("jax", reason="Keras's own numpy backend imports jax")
    code = """
        import keras
        try:
            import keras_tracefire
        except ImportError as error:
            print(error)
    """
    said = python(code, backend="numpy")
    assert "[TF-E0502] Keras was imported before" in said and "has chosen 'numpy'" in said
    assert "before `import keras`" in said


def test_every_chain_of_backends_got_a_branch():
    import keras
    from keras_tracefire import _hook

    if _hook._has_plugins():
        assert _hook.branched == []
    else:
        assert set(_hook.branched) >= {
            "keras.src.backend",
            "keras.src.layers.layer",
            "keras.src.models.model",
            "keras.src.optimizers.optimizer",
        }
    names = [cls.__module__ for cls in keras.Model.__mro__]
    assert "keras_tracefire.src.trainer" in names and "keras_tracefire.src.layer" in names


def test_keras_files_are_not_touched():
    """Compiled code of the changed modules must not reach Keras's __pycache__."""
    code = """
        import keras_tracefire, keras, py_compile, importlib.util, marshal
        from keras_tracefire import _hook
        for name in _hook.branched:
            module = sys.modules[name]
            cache = importlib.util.cache_from_source(module.__file__)
            try:
                data = open(cache, 'rb').read()[16:]
            except FileNotFoundError:
                continue
            assert b'keras_tracefire' not in data, name
        print('clean')
    """
    assert python(code, backend="tracefire") == "clean"


def test_branch_is_cloned_from_the_template():
    from keras_tracefire import _hook

    source = textwrap.dedent(
        """
        if backend() == "tensorflow":
            from keras.src.backend.tensorflow.trainer import TensorFlowTrainer as Trainer
        elif backend() == "jax":
            from keras.src.backend.jax.trainer import JAXTrainer as Trainer
        else:
            raise RuntimeError("unknown")
        """
    )
    import ast

    tree, count = _hook.add_branches(source, "model.py")
    text = ast.unparse(tree)
    assert count == 1
    assert text.startswith(
        "if backend() == 'tracefire':\n"
        "    from keras_tracefire.src.trainer import TracefireTrainer as Trainer\n"
        "elif backend() == 'tensorflow':"
    )
    assert _hook.add_branches("if backend() == 'jax':\n    x = 1\n", "other.py")[1] == 0


def test_preprocessing_layers_find_the_backend():
    import keras
    import numpy as np

    out = keras.layers.Rescaling(0.5)(np.ones((1, 2), "float32"))
    assert isinstance(out, tracefire.Tensor) and out.numpy().tolist() == [[0.5, 0.5]]


def test_set_backend_and_back():
    pytest.importorskip("jax", reason="Keras's own numpy backend imports jax")
    code = """
        import keras_tracefire, keras, warnings
        warnings.simplefilter('ignore')
        keras.config.set_backend('numpy')
        import keras
        print(keras.backend.backend())
        keras.config.set_backend('tracefire')
        import keras
        print(keras.backend.backend())
    """
    assert python(code, backend="tracefire").split() == ["numpy", "tracefire"]
