# SPDX-License-Identifier: Apache-2.0
"""Records and reports that cannot be written: the program's status is returned, and what is not kept is said."""
import json
import shutil
import subprocess

import pytest

from prove_tools import BUILD, PROVE, Sandbox

SAID = "the record is not kept: "
TOOLS = BUILD / "bin" / "tracefire-tools"


@pytest.fixture
def box(tmp_path):
    return Sandbox(tmp_path)


def shell(box, *lines):
    """A script that uses the stand-in GPU and then does these; beside the program, where CUPTI is found."""
    path = box.folder / "bin" / "script"
    path.write_text("\n".join(["#!/bin/sh", f"{box.program} training 3", *map(str, lines)]) + "\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("script", ["rm -rf {}", "rm -rf {0}; mkdir -m 700 {0}", "rm -f {}/*", "rm -rf {0}; touch {0}"])
def test_a_folder_that_the_program_removes(box, tmp_path, script):
    out = tmp_path / "out"
    done = box.prove("--json", "--require", "on-gpu", "--out", out, "--", shell(box, script.format(out), "exit 7"))
    assert done.returncode == 7
    assert SAID in done.stderr and str(out) in done.stderr and "--out" in done.stderr
    report = json.loads(done.stdout)
    assert report["exit_status"] == 7
    # What was recorded is lost: nothing is claimed of it.
    assert report["verdict"] == "unknown" and report["complete"] is False and report["incomplete"]


def test_a_verdict_that_is_required_needs_its_records(box, tmp_path):
    out = tmp_path / "out"
    done = box.prove("--require", "on-gpu", "--out", out, "--", shell(box, f"rm -rf {out}"))
    assert done.returncode == 3 and SAID in done.stderr


@pytest.mark.parametrize("out", ["/proc/no/such/place", "/dev/null/out", "/dev/null"])
@pytest.mark.parametrize("words", [[], ["--json"], ["--quiet"]])
def test_a_folder_that_cannot_be_made_is_refused_before_the_program_runs(box, tmp_path, out, words):
    done = box.prove(*words, "--out", out, "--", "touch", tmp_path / "ran")
    assert done.returncode == 2 and done.stdout == ""
    assert out in done.stderr and not (tmp_path / "ran").exists()


def test_reports_that_cannot_be_written(box, tmp_path):
    out = tmp_path / "out"
    done = box.prove("--out", out, "--", shell(box, f"mkdir {out}/report.html", "exit 7"))
    assert done.returncode == 7 and "verdict   on-gpu" in done.stderr
    assert SAID in done.stderr and "report.html" in done.stderr


def test_another_place_for_temporary_files_is_found(box):
    done = box.prove("--json", "--", box.program, "training", "3", TMPDIR="/proc/no-such-place")
    assert done.returncode == 0 and SAID not in done.stderr
    assert json.loads(done.stdout)["verdict"] == "on-gpu"


def test_no_place_for_temporary_files(box, tmp_path):
    places = "/tmp /var/tmp /dev/shm".split()
    hide = " && ".join(f"mount -t tmpfs -o ro none {place}" for place in places)
    # The sandbox may lie below one of these: only what every system has is run.
    program = f'exec {PROVE} "$@"'
    words = ["unshare", "-rm", "sh", "-c", f"{hide} && {program}", "sh"]
    if not shutil.which("unshare") or str(PROVE).startswith("/tmp/") or subprocess.run(
            ["unshare", "-rm", "sh", "-c", hide], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("no mounts of its own are allowed here")
    done = subprocess.run([*words, "--json", "--", "sh", "-c", "exit 5"], capture_output=True, text=True, timeout=60,
                          env={**box.environment, "TMPDIR": "/proc/none"})
    assert done.returncode == 5 and json.loads(done.stdout)["exit_status"] == 5
    assert SAID in done.stderr and "Set TMPDIR" in done.stderr and "/var/tmp: Read-only file system" in done.stderr


def test_folders_that_are_in_use_are_still_refused(box, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    done = box.prove("--out", tmp_path / "full", "--", "touch", tmp_path / "ran")
    assert done.returncode == 2 and not (tmp_path / "ran").exists()


def test_stdout_is_one_document(box):
    done = box.prove("--json", "--", shell(box, "echo noise", "echo more >&2", "exit 7"))
    assert done.returncode == 7
    assert json.loads(done.stdout)["verdict"] == "on-gpu"  # one document and nothing else
    assert "noise\n" in done.stderr and "more\n" in done.stderr
    done = box.prove("--json", "--quiet", "--", "no-such-program-here")
    assert done.returncode == 127 and json.loads(done.stdout)["exit_status"] == 127
    assert "No such file" in done.stderr


def test_stdout_is_one_document_where_stderr_is_closed(box):
    done = subprocess.run(["sh", "-c", 'exec "$0" --json --quiet -- sh -c "echo noise; exit 4" 2>&-', str(PROVE)],
                          capture_output=True, text=True, env=box.environment, timeout=60)
    assert done.returncode == 4 and json.loads(done.stdout)["exit_status"] == 4


def test_attach_does_not_know_a_status(box, tmp_path):
    for seconds, ended in (("1", False), ("0", True)):
        process = subprocess.Popen(["sleep", "600" if not ended else "4.5"])
        try:
            done = box.prove("--json", "--out", tmp_path / seconds, "--attach", process.pid, "--seconds", seconds)
        finally:
            process.kill()
            process.wait(timeout=20)
        assert done.returncode == 0
        assert json.loads(done.stdout)["exit_status"] is None
        text = (tmp_path / seconds / "report.txt").read_text()
        assert "status 0" not in text and "status 0" not in (tmp_path / seconds / "report.html").read_text()
        assert ("not yet after" in text) is not ended
        again = box.prove("--json", "--from", tmp_path / seconds)
        assert json.loads(again.stdout)["exit_status"] is None


def test_check_returns_the_status_too(box, tmp_path):
    page = tmp_path / "pages" / "page.html"
    page.parent.mkdir()
    words = [str(TOOLS), "check", "--no-tests", "--json", "--html", str(page), "--", "sh", "-c",
             f'echo noise; rm -rf "{page.parent}"; exit 7']
    done = subprocess.run(words, capture_output=True, text=True, timeout=120,
                          env={**box.environment, "TMPDIR": "/proc/no-such-place"})
    assert done.returncode == 7, done.stderr
    document = json.loads(done.stdout)
    assert document["exit_status"] == 7 and document["proof"]["exit_status"] == 7
    assert "the page is lost" in done.stderr and str(page) in done.stderr and "noise\n" in done.stderr


def test_numbers_beyond_all_bounds(box):
    done = box.prove("--limit", "99999999999999999999", "--", "true")
    assert done.returncode == 2 and "from 0 to 9223372036854775807" in done.stderr


def verdict(done):
    report = json.loads(done.stdout)
    return report["verdict"], report["complete"]


def test_what_runs_on_is_not_called_cpu(box):
    left = box.folder / "bin" / "left"
    left.write_text("#!/bin/sh\nsetsid sleep 60 >/dev/null 2>&1 </dev/null &\nexit 6\n")
    left.chmod(0o755)
    done = box.prove("--json", "--quiet", "--", left)
    assert done.returncode == 6 and verdict(done) == ("unknown", False)
    assert "ran on" in json.loads(done.stdout)["incomplete"][0]
    # What was seen for certain stays, and a helper that ends with its parent spoils nothing.
    done = box.prove("--json", "--require", "on-gpu", "--quiet", "--", shell(box, "sleep 60 >/dev/null 2>&1 &"))
    assert done.returncode == 0 and verdict(done) == ("on-gpu", True)
    assert any("ran on" in note for note in json.loads(done.stdout)["notes"])
    done = box.prove("--json", "--quiet", "--", "sh", "-c", "sleep 0.05 & exit 0")
    assert verdict(done) == ("on-cpu", True)


def test_orphans_are_looked_at(box, tmp_path):
    orphan = "(setsid sleep 3 & exec true); sleep 2.5"
    box.prove("--quiet", "--out", tmp_path / "out", "--", "sh", "-c", orphan)
    session = json.loads((tmp_path / "out" / "session.json").read_text())
    assert any(p["command"] == "sleep 3" for p in session["processes"]), session["processes"]


def test_short_programs_without_the_variables_are_not_called_cpu(box):
    script = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done"
    done = box.prove("--json", "--quiet", "--", "sh", "-c", 'exec env -i /bin/sh -c "$0"', script)
    assert verdict(done)[0] == "unknown"


def test_a_program_that_was_not_started_has_no_verdict(box, tmp_path):
    for command, status in ((tmp_path, 126), (tmp_path / "missing", 127)):
        done = box.prove("--json", "--quiet", "--", command)
        assert done.returncode == status and verdict(done)[0] == "unknown"
        assert "was not started" in json.loads(done.stdout)["reason"]


def test_a_folder_that_the_program_opens_to_others(box, tmp_path):
    script = box.folder / "bin" / "opens"
    script.write_text(f"#!/bin/sh\nchmod 777 $TRACEFIRE_PROVE_DIR\n{box.program} training 3\n")
    script.chmod(0o755)
    done = box.prove("--json", "--out", tmp_path / "out", "--", script)
    assert done.returncode == 0 and verdict(done) == ("unknown", False)
    assert "opened to others" in done.stderr


def test_memory_does_not_grow_with_launches(box):
    """Buffers are used again: a launch costs no new pages."""
    import resource
    faults = []
    for launches in (50_000, 350_000):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        box.prove("--quiet", "--limit", "0", "--", box.program, "burst", launches)
        faults.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before)
    assert faults[1] - faults[0] < 3000, faults  # fresh buffers: 300,000 launches fill 18,000 pages
