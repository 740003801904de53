# SPDX-License-Identifier: Apache-2.0
"""Settings as Python gets them: files and variables as for the commands, and what is wrong in them
is an error where work begins, not at import and not a default."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

tracefire = pytest.importorskip("tracefire")

SHOW = "import tracefire; from tracefire import _core; print(_core.get_setting('{}'))"


def needs_keras():
    """Without importing it: its backend is chosen by a variable."""
    if importlib.util.find_spec("keras") is None:
        pytest.skip("no Keras here")


@pytest.fixture
def run(tmp_path):
    """Runs a program with a home of its own; variables, and the text of the user's file."""

    def run_(program, file=None, **variables):
        kept = {k: v for k, v in os.environ.items() if not re.match("TRACEFIRE_|XDG_|KERAS", k)}
        env = {**kept, "HOME": str(tmp_path), **variables}
        if file is not None:
            (tmp_path / ".config/tracefire").mkdir(parents=True, exist_ok=True)
            (tmp_path / ".config/tracefire/config").write_text(file)
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=env)

    return run_


def test_the_order_is_the_one_of_the_commands(run):
    show = SHOW.format("max_pending_nodes")
    assert run(show).stdout == "256\n"
    assert run(show, file="max_pending_nodes = 7\n").stdout == "7\n"
    assert run(show, file="max_pending_nodes = 7\n", TRACEFIRE_MAX_PENDING_NODES="8").stdout == "8\n"
    changed = "from tracefire import _core; _core.set_setting('max_pending_nodes', 9);" + show
    assert run(changed, file="max_pending_nodes = 7\n", TRACEFIRE_MAX_PENDING_NODES="8").stdout == "9\n"


@pytest.mark.parametrize(
    "file, variables, said",
    [
        (None, {"TRACEFIRE_THREADS": "lots"}, "environment variable TRACEFIRE_THREADS: the setting threads cannot be 'lots'. A whole number"),
        (None, {"TRACEFIRE_DEVICE_POLICY": "Soft"}, "One of soft|strict was expected"),
        (None, {"TRACEFIRE_DISABLED_PASSES": "nosuch"}, "raise_softmax, simplify, fuse"),
        (None, {"TRACEFIRE_DISABLED_PASSES": "place"}, "without which no program can be made"),
        ("threads = lots\n", {}, "config:1: the setting threads cannot be 'lots'"),
        ("nonsense\n", {}, "config:1: 'nonsense' is no setting"),
    ],
)  # fmt: skip
def test_a_wrong_one_is_an_error_where_work_begins(run, file, variables, said):
    program = (
        "import tracefire\n"
        "from tracefire import _core as core\n"
        "for work in (lambda: tracefire.tensor([1.0]), lambda: core.ops.iota(dtype='float32', shape=(3,)).tolist(), core.list_devices,\n"
        "             lambda: tracefire.Variable([1.0]), lambda: core.get_setting('threads')):\n"
        "    try: work()\n"
        "    except ValueError as error: print(error)\n"
        "    else: print('nothing')\n"
    )
    done = run(program, file=file, **variables)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    for line in lines:
        assert line.startswith("[TF-E0503] ") and said in line, lines


def test_the_program_may_mend_it(run):
    program = (
        "from tracefire import _core as core\n"
        "core.set_setting('threads', 2)\n"
        "print(core.ops.add(core.tensor(1.0), core.tensor(2.0)).item())\n"
    )
    done = run(program, TRACEFIRE_THREADS="lots")
    assert done.stdout == "3.0\n" and done.stderr == ""


def test_a_variable_that_is_no_setting_is_said_once(run):
    done = run(SHOW.format("threads"), TRACEFIRE_LOG_DEVICE_PLACMENT="1", TRACEFIRE_PROVE_DIR="/nonexistent")
    assert done.stdout == "0\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("tracefire: warning: the environment variable TRACEFIRE_LOG_DEVICE_PLACMENT belongs to no")
    assert line.endswith("Did you mean TRACEFIRE_LOG_DEVICE_PLACEMENT?")


# ---- the placement log by every entrance ----

LOGGED = re.compile(r"^Executing op (\w+) in device /job:localhost/replica:0/task:0/device:(?:GPU|CPU):0", re.M)
ADD = "from tracefire import _core as core; core.ops.add(core.tensor(1.0), core.tensor(2.0)).item()"
FIT = (
    "import os; os.environ['KERAS_BACKEND'] = 'tracefire'\n"
    "import tracefire, keras, numpy\n"
    "{}\n"
    "model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])\n"
    "model.compile('sgd', 'mse')\n"
    "model.fit(numpy.ones((8, 4)), numpy.ones((8, 2)), batch_size=4, verbose=0)\n"
)


def test_the_placement_log_by_variable_file_and_call(run):
    for variables in ({"TRACEFIRE_LOG_DEVICE_PLACEMENT": word} for word in ("1", "true", "yes", "on")):
        assert "AddV2" in LOGGED.findall(run(ADD, **variables).stderr), variables
    assert "AddV2" in LOGGED.findall(run(ADD, file="log_device_placement = on\n").stderr)
    for call in ("tracefire.debugging.set_log_device_placement(True)",
                 "tracefire._core.set_setting('log_device_placement', 'yes')"):  # fmt: skip
        assert "AddV2" in LOGGED.findall(run(f"import tracefire; {call}; {ADD}", file="").stderr), call
    off = "import tracefire; tracefire.debugging.set_log_device_placement(False); "
    assert run(off + ADD, TRACEFIRE_LOG_DEVICE_PLACEMENT="1").stderr == ""
    assert run(ADD).stderr == ""
    for word, answer in (("off", "False"), ("no", "False"), ("0", "False"), ("on", "True")):
        asked = run("import tracefire; print(tracefire.debugging.get_log_device_placement())", TRACEFIRE_LOG_DEVICE_PLACEMENT=word)
        assert asked.stdout == answer + "\n"


def test_the_placement_log_reaches_keras_fit(run):
    needs_keras()
    by_call = run(FIT.format("tracefire.debugging.set_log_device_placement(True)"))
    by_variable = run(FIT.format(""), TRACEFIRE_LOG_DEVICE_PLACEMENT="1")
    for done in (by_call, by_variable):
        assert done.returncode == 0, done.stderr
        assert "MatMul" in LOGGED.findall(done.stderr)
    assert not LOGGED.search(run(FIT.format("")).stderr)


# ---- the manifest ----


def test_the_manifest_says_what_this_process_computes_with(run):
    program = (
        "import json, tracefire\n"
        "a = tracefire.manifest(seed=7)\n"
        "print(json.dumps([a, tracefire.manifest()]))\n"
    )
    done = run(program, TRACEFIRE_MATMUL_PRECISION="highest", file="threads = 2\n")
    with_seed, without = json.loads(done.stdout)
    assert with_seed["schema"] == "tracefire.manifest/1"
    assert with_seed["seed"] == 7 and without["seed"] is None
    assert with_seed["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert with_seed["python"]["keras"] is None
    assert with_seed["precision"] == "highest"
    assert {(s["name"], s["value"], s["source"]) for s in with_seed["settings"]} == {
        ("matmul_precision", "highest", "environment"), ("threads", "2", "user file"),
    }  # fmt: skip
    assert with_seed["tracefire"]["version"] == tracefire.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", with_seed["time"])


def test_the_manifest_knows_the_seed_of_keras(run):
    needs_keras()
    done = run(
        "import os; os.environ['KERAS_BACKEND'] = 'tracefire'\n"
        "import tracefire, keras\n"
        "keras.utils.set_random_seed(11)\n"
        "m = tracefire.manifest()\n"
        "print(m['seed'], m['python']['keras'] == keras.__version__)\n"
    )
    assert done.stdout == "11 True\n", done.stderr


def test_every_variable_that_is_read_is_known():
    """One that is missing from the list would be said to have no effect."""
    root = pathlib.Path(__file__).parents[2]
    schema = json.loads((root / "schema" / "settings.json").read_text())
    known = {"TRACEFIRE_" + row["name"].upper() for row in schema["settings"]}
    others = [row["name"] for row in schema["other_variables"]]
    read = re.compile(r'(?:getenv\(|number_of\(\{|environ\.get\(|environ\[)"(TRACEFIRE_[A-Z_]+)"')
    names = set()
    for file in sorted((root / "src").rglob("*.cpp")) + sorted((root / "python").rglob("*.py")):
        names.update(read.findall(file.read_text()))
    assert {"TRACEFIRE_PROVE_DIR", "TRACEFIRE_PROVE_BEAT_MS"} <= names
    for name in names - known:
        assert any(name == o or (o[-1] == "*" and name.startswith(o[:-1])) for o in others), name


def test_every_variable_that_is_listed_is_read():
    """One that nothing reads would be documented and have no effect."""
    root = pathlib.Path(__file__).parents[2]
    schema = json.loads((root / "schema" / "settings.json").read_text())
    read = re.compile(
        r'(?:getenv\(|number_of\(\{|environ\.get\(|environ\[|setdefault\()"(TRACEFIRE_[A-Z_]+)"'
        r"|\$ENV\{(TRACEFIRE_[A-Z_]+)\}"
    )
    names = set()
    for folder in ("src", "python", "scripts", "cmake", "tests"):
        for file in (root / folder).rglob("*"):
            if file.suffix in ("", ".cpp", ".h", ".py", ".cmake", ".cc") and file.is_file():
                names.update(a or b for a, b in read.findall(file.read_text(errors="replace")))
    for row in schema["other_variables"]:
        name = row["name"]
        ending = name[-1] == "*"
        assert any(n.startswith(name[:-1]) if ending else n == name for n in names), name
