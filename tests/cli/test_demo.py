# SPDX-License-Identifier: Apache-2.0
"""`tracefire demo`: real training through the C++ library, from any folder, without Python."""

import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from conftest import BUILD, PROGRAM, SCHEMAS
from json_schema import errors

VERDICTS = ("on-gpu", "partly-on-gpu", "on-cpu")


def check_result(stdout, path):
    """The last two lines and the file say the same, and the file fits its published schema."""
    accuracy, verdict = stdout.splitlines()[-2:]
    assert re.fullmatch(r"accuracy 0\.\d{4}", accuracy)
    assert verdict in [f"verdict {word}" for word in VERDICTS]
    result = json.loads(pathlib.Path(path).read_text())
    problems = list(errors(result, SCHEMAS["tracefire.demo/1"]))
    assert not problems, problems
    assert f"accuracy {result['accuracy']:.4f}" == accuracy
    assert f"verdict {result['verdict']}" == verdict
    assert result["sizes"] == {"train": 1437, "test": 360, "pixels": 64, "classes": 10}
    # The table above the last lines is the proof in the file.
    for row in result["proof"]["rows"]:
        assert re.search(rf"^{row['op']}\s+{row['device']}\s+\S+", stdout, re.M)
    return result


def test_it_learns_and_says_where(tmp_path):
    """With nothing on PATH, no home and no terminal, in a folder of its own."""
    done = subprocess.run(
        [PROGRAM, "demo", "--json", "demo.json"], capture_output=True, text=True, timeout=120,
        stdin=subprocess.DEVNULL, cwd=tmp_path, env={"HOME": str(tmp_path / "missing")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = check_result(done.stdout, tmp_path / "demo.json")
    assert result["accuracy"] >= 0.95
    assert result["epochs"] == 40 and result["batch"] == 64
    lines = done.stderr.splitlines()
    assert lines[0] == "devices: " + ", ".join(result["devices"])
    assert ("no GPU is used: " + result["why_no_gpu"] in lines) == bool(result["why_no_gpu"])
    epochs = [line for line in lines if line.startswith("epoch")]
    assert len(epochs) == 10 and "\r" not in done.stderr
    assert re.fullmatch(r"epoch  40/40  loss \d\.\d{4}  accuracy \d\.\d{4}", epochs[-1])


def test_the_seed_decides_the_figures(cli):
    first, again = (cli("demo", "--epochs", "2", "--seed", "7", status=1) for _ in range(2))
    other = cli("demo", "--epochs", "2", "--seed", "8", status=1)
    assert first.err == again.err and first.out == again.out
    assert first.err != other.err


def test_below_the_least_accuracy_it_fails_but_says_all(cli, tmp_path):
    done = cli("demo", "--epochs", "1", "--json", str(tmp_path / "d.json"), status=1)
    assert check_result(done.out, tmp_path / "d.json")["accuracy"] < 0.95
    assert re.search(r"^tracefire: the accuracy 0\.\d{4} is below 0\.95, so the exit status is 1\.", done.err, re.M)
    assert "--epochs 40" in done.err


@pytest.mark.parametrize("words", [("--epochs", "0"), ("--batch", "-1"), ("--seed", "-2"), ("--epochs", "x")])
def test_wrong_numbers_are_refused_before_anything_runs(cli, words):
    done = cli("demo", *words, status=2)
    assert done.out == "" and "TF-E0502" in done.err and "devices" not in done.err


@pytest.mark.parametrize(
    "path, said",
    [
        ("missing/demo.json", "No such file or directory"),
        ("/", "Is a directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_where_the_result_cannot_be_written_nothing_is_trained(cli, tmp_path, path, said):
    done = cli("demo", "--json", path, status=2, cwd=tmp_path)
    assert "--json: the file " in done.err and said in done.err
    assert "epoch" not in done.err and done.out == ""


def test_looking_for_a_place_changes_nothing(cli, tmp_path):
    new, old = tmp_path / "new.json", tmp_path / "old.json"
    old.write_text("old")
    for path in (new, old):
        cli("demo", "--json", path, "--epochs", "x", status=2)
        status, _, _ = interrupted_after(1, "--epochs", "1000000", "--json", str(path))
        assert status == 130
    assert not new.exists() and old.read_text() == "old"


def test_a_full_disk_loses_the_file_and_not_the_result(cli):
    done = cli("demo", "--epochs", "1", "--json", "/dev/full", status=1)
    assert "[TF-E0404] the file /dev/full cannot be written: No space left on device" in done.err
    assert re.search(r"^accuracy 0\.\d{4}\nverdict \S+\n\Z", done.out, re.M)


def test_the_result_carries_what_it_was_made_with(cli, tmp_path):
    env = {"TRACEFIRE_MATMUL_PRECISION": "highest"}
    cli("demo", "--epochs", "1", "--seed", "7", "--json", tmp_path / "d.json", status=1, env=env)
    made_with = json.loads((tmp_path / "d.json").read_text())["manifest"]
    assert not list(errors(made_with, SCHEMAS["tracefire.manifest/1"]))
    assert made_with["seed"] == 7 and made_with["precision"] == "highest" and made_with["python"] is None
    (changed,) = made_with["settings"]
    cli("demo", "--epochs", "1", "--json", tmp_path / "d.json", status=1)
    result = json.loads((tmp_path / "d.json").read_text())
    assert result["manifest"]["precision"] == result["proof"]["precision"]
    assert changed == {"name": "matmul_precision", "value": "highest", "source": "environment"}


@pytest.mark.parametrize("word", ["", " 1", "1 ", "+1", "1e3", "0x10", "-0", "\u0663", "1_000", "9" * 30, "nan"])
@pytest.mark.parametrize("option", ["--epochs", "--batch", "--seed"])
def test_what_is_no_number_is_refused(cli, option, word):
    if (option, word) == ("--seed", "-0"):
        return  # zero
    done = cli("demo", option, word, status=2)
    assert f"TF-E0502] {option} was given '" in done.err and done.out == ""


def test_a_batch_larger_than_the_data_is_all_of_it(cli):
    done = cli("demo", "--epochs", "1", "--batch", str(2**63 - 1), status=1)
    assert "verdict" in done.out


def interrupted_after(lines, *words, pause=0.2):
    """Runs the demo, sends it SIGINT `pause` seconds after so many lines of talk; gives its status,
    its output and what it said."""
    process = subprocess.Popen(
        [PROGRAM, "demo", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    talk = [process.stderr.readline() for _ in range(lines)]
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, "".join(talk) + err


def test_interrupted_training_says_how_far_it_came():
    talk = 1 if "on-gpu" in verdict_here() else 2
    for pause in (0.2, 1, 4, 16):  # a GPU takes its time before the first epoch
        status, out, err = interrupted_after(talk, "--epochs", "1000000", pause=pause)
        assert status == 130, err
        assert out == ""
        if "before the first" not in err:
            break
    assert re.search(r"^finished \d+ of 1000000 epochs: loss \d\.\d+  accuracy \d\.\d+$", err, re.M), err
    assert "TF-E0501" in err and "Traceback" not in err


def verdict_here():
    return subprocess.run([PROGRAM, "demo", "--epochs", "1"], capture_output=True, text=True).stdout


@pytest.mark.slow
def test_with_a_gpu_every_step_runs_on_it(cli, emulated_kernels, tmp_path):
    """The emulator runs the kernels that the GPU would run, so that the figures are right, too."""
    here = cli("demo", "--epochs", "2", status=1, env={"CUDA_VISIBLE_DEVICES": "-1"})
    done = cli("demo", "--epochs", "2", "--json", tmp_path / "demo.json", status=1, env=emulated_kernels)
    assert done.out, done.err
    result = check_result(done.out, tmp_path / "demo.json")
    assert result["verdict"] == "on-gpu" and result["devices"] == ["/GPU:0", "/CPU:0"]
    assert done.err.startswith("devices: /GPU:0, /CPU:0\n") and "no GPU" not in done.err
    proof = result["proof"]
    assert {row["device"] for row in proof["rows"]} == {"/GPU:0"}
    # An epoch is one captured graph and one for the partial batch; so is the test.
    assert proof["graph_launches"] == 2 * 3 and proof["variable_copies"] == 0

    def figures(text):
        return [float(number) for number in re.findall(r"(?:loss|accuracy) ([\d.]+)", text)]

    assert figures(done.err) == pytest.approx(figures(here.err), abs=2e-3)


def test_with_a_driver_that_is_too_old_it_trains_on_the_processor_and_says_why(cli, emulated):
    done = cli("demo", "--epochs", "2", status=1, env={**emulated, "TF_EMU_CUDA": "11040"})
    assert done.err.splitlines()[0] == "devices: /CPU:0"
    (why,) = re.findall(r"^no GPU is used: (.+)$", done.err, re.M)
    # Where the machine has a driver of its own, its version is told, too.
    assert re.search(r"driver( [\d.]+)? supports CUDA 11\.4", why) and "Update" in why
    assert done.out.endswith("verdict on-cpu\n")


@pytest.mark.parametrize("columns", [100, 40])
def test_on_a_terminal_one_line_moves(cli, columns):
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([PROGRAM, "demo"], stdout=subprocess.DEVNULL, stderr=its, env=cli.env)
    os.close(its)
    said = b""
    while True:
        try:
            said += os.read(ours, 4096)
        except OSError:  # the other end has closed
            break
    os.close(ours)
    assert process.wait() == 0
    moves = said.decode().replace("\x1b[K", "").split("\r")
    epochs = [m for m in moves if "epoch" in m]
    assert len(epochs) == 40
    assert all(len(m.rstrip("\n")) < columns for m in epochs)
    assert all(m.startswith("[#" if columns == 100 else "epoch") for m in epochs[3:])
    assert epochs[-1].startswith("[" + 30 * "#" + "] epoch  40/40") == (columns == 100)


def test_it_gives_the_same_as_the_demo_in_python(tmp_path):
    """Same network, split, lines and document; not the same numbers, for Keras draws its own seeds."""
    pytest.importorskip("sklearn")
    if not list((BUILD / "python" / "tracefire").glob("_core*.so")):
        pytest.skip("the Python module is not built")
    done = subprocess.run(
        [sys.executable, "-m", "tracefire.demo", "--json", tmp_path / "demo.json"], capture_output=True,
        text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert check_result(done.stdout, tmp_path / "demo.json")["accuracy"] >= 0.95
