# SPDX-License-Identifier: Apache-2.0
"""How tracefire-prove runs a program: exit statuses, signals, files, and when it does not trace."""
import json
import os
import signal
import stat
import time

import pytest

from prove_tools import BUILD, Sandbox


@pytest.fixture
def box(tmp_path):
    return Sandbox(tmp_path)


def records(folder, ending):
    return sorted(folder.glob("p*." + ending))


@pytest.mark.parametrize("scene, status", [("training", 0), ("exit7", 7), ("segv", 139), ("kill9", 137), ("nothing", 0)])
def test_exit_status_is_the_programs(box, tmp_path, scene, status):
    done = box.prove("--out", tmp_path / "out", "--", box.program, scene, "3")
    assert done.returncode == status
    session = json.loads((tmp_path / "out" / "session.json").read_text())
    assert session["ending"]["status"] == status
    assert session["ending"]["signal"] == (status - 128 if status > 128 else 0)
    # A killed program has left what was collected until then.
    assert len(records(tmp_path / "out", "sum")) == (0 if scene == "nothing" else 1)


def test_statuses_of_what_cannot_be_started(box, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program\n")
    assert box.prove("--", tmp_path / "missing").returncode == 127
    assert box.prove("--", "no-such-command-anywhere").returncode == 127
    done = box.prove("--", plain)
    assert done.returncode == 126 and "Permission denied" in done.stderr
    assert box.prove("--", tmp_path).returncode == 126  # a folder
    assert box.prove().returncode == 2
    assert box.prove("--limit", "many", "--", "true").returncode == 2


def test_streams_and_environment_are_the_programs_own(box, tmp_path):
    script = 'read line; echo "out $line"; echo err >&2; echo "$0 $# $KEPT"'
    done = subprocess_with_input(box, ["--quiet", "--", "sh", "-c", script, "name", "two words"], "hello\n", KEPT="yes")
    assert done.stdout == "out hello\nname 1 yes\n"
    assert done.stderr == "err\n"


def subprocess_with_input(box, words, text, **variables):
    import subprocess
    from prove_tools import PROVE
    return subprocess.run([str(PROVE), *words], input=text, text=True, capture_output=True,
                          env={**box.environment, **variables}, timeout=60)


def test_signals_reach_the_program(box, tmp_path):
    script = 'trap "echo got; exit 5" TERM; echo ready; while :; do sleep 0.05; done'
    process = box.start("--", "sh", "-c", script)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert out == "got\n" and process.returncode == 5
    # Ctrl-C sent by `kill` to the prover alone.
    process = box.start("--", "sh", "-c", script.replace("TERM", "INT"))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 5


def test_ignored_child_signal_is_no_obstacle(box):
    process = box.start("--", "sh", "-c", "trap '' CHLD; exec " + box.program + " exit7")
    assert process.wait(timeout=60) == 7


def test_files_are_private(box, tmp_path):
    box.prove("--out", tmp_path / "out", "--", box.program, "training", "3")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700
    for path in (p for p in (tmp_path / "out").rglob("*") if p.is_file()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_folder_must_be_new_or_empty(box, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    done = box.prove("--out", tmp_path / "full", "--", "true")
    assert done.returncode == 2 and "not empty" in done.stderr
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert box.prove("--out", tmp_path / "link", "--", "true").returncode == 2


def test_nothing_is_left_without_out(box, tmp_path):
    (tmp_path / "tmp").mkdir()
    box.prove("--", box.program, "training", "2", TMPDIR=str(tmp_path / "tmp"))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_another_tool_that_is_injected_keeps_its_place(box, tmp_path):
    done = box.prove("--out", tmp_path / "out", "--", "sh", "-c", 'echo "$CUDA_INJECTION64_PATH"',
                     CUDA_INJECTION64_PATH="/opt/other/libtool.so")
    assert done.stdout == "/opt/other/libtool.so\n"
    assert "/opt/other/libtool.so" in json.loads((tmp_path / "out" / "session.json").read_text())["tracing"]


def test_library_that_others_can_write_is_refused(box, tmp_path):
    import shutil
    library = tmp_path / "libtracefire_inject.so"
    shutil.copy(BUILD / "lib" / "libtracefire_inject.so", library)
    library.chmod(0o777)
    done = box.prove("--out", tmp_path / "out", "--", box.program, "exit7", TRACEFIRE_INJECT_LIBRARY=str(library))
    assert done.returncode == 7 and "writable by everyone" in done.stderr
    assert records(tmp_path / "out", "sum") == []


def run_program(box, folder, library, *words, **variables):
    """The program alone, with the library as `--print-env` would have it."""
    import subprocess
    return subprocess.run([box.program, *words], capture_output=True, text=True, timeout=60,
                          env={**box.environment, "CUDA_INJECTION64_PATH": str(library),
                               "TRACEFIRE_PROVE_DIR": str(folder), "TRACEFIRE_PROVE_CUPTI": f"13={box.cupti}",
                               **variables})


def test_library_itself_refuses_unsafe_places(box, tmp_path):
    import shutil
    good = tmp_path / "libtracefire_inject.so"
    shutil.copy(BUILD / "lib" / "libtracefire_inject.so", good)
    good.chmod(0o755)
    folder = tmp_path / "records"
    folder.mkdir(mode=0o700)
    assert run_program(box, folder, good, "training", "2").stderr == ""
    assert len(records(folder, "sum")) == 1
    bad = tmp_path / "bad.so"
    shutil.copy(good, bad)
    bad.chmod(0o775)
    for where, library, words in ((folder, bad, "writable by others"),
                                  (tmp_path / "none", good, "does not exist"),
                                  ("relative", good, "absolute")):
        done = run_program(box, where, library, "exit7")
        assert done.returncode == 7 and words in done.stderr, (where, done.stderr)
    folder.chmod(0o755)
    done = run_program(box, folder, good, "exit7")
    assert done.returncode == 7 and "open to others" in done.stderr
    assert len(records(folder, "sum")) == 1


def test_program_goes_on_when_nothing_can_be_written(box, tmp_path):
    folder = tmp_path / "records"
    folder.mkdir(mode=0o700)
    library = BUILD / "lib" / "libtracefire_inject.so"
    import resource
    import subprocess
    # A limit on file sizes would end a program that writes beyond it with SIGXFSZ.
    done = subprocess.run([box.program, "training", "30"], timeout=60, capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
                          env={**box.environment, "CUDA_INJECTION64_PATH": str(library),
                               "TRACEFIRE_PROVE_DIR": str(folder), "TRACEFIRE_PROVE_CUPTI": f"13={box.cupti}"})
    assert done.returncode == 0, done.stderr
    os.rmdir(folder) if not list(folder.iterdir()) else None


def test_forked_child_neither_writes_nor_hangs(box, tmp_path):
    begun = time.monotonic()
    done = box.prove("--out", tmp_path / "out", "--", box.program, "fork", "5")
    assert done.returncode == 3 and time.monotonic() - begun < 45
    assert len(records(tmp_path / "out", "sum")) == 1


def test_children_have_records_of_their_own(box, tmp_path):
    assert box.prove("--out", tmp_path / "out", "--", box.program, "children", "5").returncode == 0
    assert len(records(tmp_path / "out", "sum")) == 2


def test_endless_run_stays_within_its_limit(box, tmp_path):
    process = box.start("--out", tmp_path / "out", "--limit", "200000", "--beat", "20", "--", box.program, "endless")
    time.sleep(3)
    deadline = time.monotonic() + 60
    while not any(r.stat().st_size > 50_000 for r in records(tmp_path / "out", "win")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    window, = records(tmp_path / "out", "win")
    assert 50_000 < window.stat().st_size <= 200_000 + 300_000
    summary, = records(tmp_path / "out", "sum")
    assert summary.stat().st_size < 100_000
