# SPDX-License-Identifier: Apache-2.0
"""What tracefire-prove reports, and how the tracing reaches containers and other hosts."""
import html.parser
import json
import os
import pathlib
import shlex
import shutil
import socket
import stat
import subprocess
import sys

import pytest

from prove_tools import BUILD, ROOT, Sandbox

sys.path.insert(0, str(ROOT / "tests" / "cli"))
from json_schema import errors  # noqa: E402

SCHEMA = json.loads((ROOT / "schema" / "cli" / "prove.json").read_text())


BUSY = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: sum(range(1000))"


@pytest.fixture
def box(tmp_path):
    return Sandbox(tmp_path)


def report_of(done):
    document = json.loads(done.stdout)
    assert list(errors(document, SCHEMA)) == []
    return document


def test_healthy_program(box, tmp_path):
    done = box.prove("--json", "--out", tmp_path / "out", "--", box.program, "training", "60")
    assert done.returncode == 0
    report = report_of(done)
    assert report["verdict"] == "on-gpu" and report["evidence"] == "traced"
    assert report["kernel_count"] == 120 and report["launches"] == 60 * 2
    assert {c["class"] for c in report["classes"]} == {"matmul", "elementwise"}
    assert report["copies"][0]["bytes"] == 60 << 20
    assert report["memory_peak"] == 2 << 30
    assert report["processes"][0]["gpus"][0]["name"] == "Emulated GPU"
    assert report["processes"][0]["clean_end"] and report["notes"] == []
    # The program says it is busy for 93.5 % of each step; a step takes a little longer than planned.
    assert 0.5 < report["busy_share"] <= 0.96


def test_from_gives_the_same_report(box, tmp_path):
    first = report_of(box.prove("--json", "--out", tmp_path / "out", "--", box.program, "training", "20"))
    again = box.prove("--json", "--from", tmp_path / "out")
    assert again.returncode == 0
    assert report_of(again) == first
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == first
    text = box.prove("--from", tmp_path / "out").stdout
    assert text == (tmp_path / "out" / "report.txt").read_text()
    assert "verdict   on-gpu" in text and "Evidence, not attestation" in text


def test_reports_are_private_and_self_contained(box, tmp_path):
    box.prove("--quiet", "--out", tmp_path / "out", "--", box.program, "training", "20", "--token=hf_0123456789abcdef01",
              AWS_SECRET_ACCESS_KEY="topsecretvalue", NCCL_DEBUG="INFO", NCCL_AUTH_TOKEN="othersecret")
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"report.txt", "report.json", "report.html", "trace.json", "session.json"} <= names
    for path in (tmp_path / "out").rglob("*"):
        if path.is_dir():
            continue
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        if path.suffix not in (".win", ".sum", ".pb"):
            for secret in ("hf_0123456789abcdef01", "topsecretvalue", "othersecret"):
                assert secret not in path.read_text(), path
    assert json.loads((tmp_path / "out" / "report.json").read_text())["environment"]["NCCL_DEBUG"] == "INFO"

    class Page(html.parser.HTMLParser):
        tags = set()

        def handle_starttag(self, tag, attributes):
            self.tags.add(tag)
            for name, value in attributes:
                assert not name.startswith("on") and name not in ("src", "href"), (tag, name, value)
    Page().feed((tmp_path / "out" / "report.html").read_text())
    assert "svg" in Page.tags and "script" not in Page.tags
    trace = json.loads((tmp_path / "out" / "trace.json").read_text())["traceEvents"]
    assert sum(e["ph"] == "X" and e["tid"] >= 1 << 24 for e in trace) == 60
    assert all(e.get("dur", 0) >= 0 for e in trace)


def fields(data):
    """(number, value) of each field of a protobuf message: integers and bytes."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value, at
    at = 0
    while at < len(data):
        key, at = varint(at)
        value, at = varint(at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def planes_of(path):
    """{name of a plane: {name of a line: [(event, start in ps, ps)]}} of an XSpace."""
    planes = {}
    for plane in (v for n, v in fields(path.read_bytes()) if n == 1):
        metadata, lines = {}, {}
        for number, value in fields(plane):
            if number == 4:
                entry = dict(fields(value))
                metadata[entry[1]] = dict(fields(entry[2]))[2].decode()
                assert dict(fields(entry[2]))[1] == entry[1]
        for line in (v for n, v in fields(plane) if n == 3):
            head = dict((n, v) for n, v in fields(line) if n != 4)
            events = [dict(fields(v)) for n, v in fields(line) if n == 4]
            assert head[1] > 0 and head[3] > 1_600_000_000_000_000_000  # ns since 1970
            name = head[2].decode()
            assert name not in lines
            lines[name] = [(metadata[e[1]], e.get(2, 0), e.get(3, 0)) for e in events]
        name = dict((n, v) for n, v in fields(plane) if n == 2)[2].decode()
        assert name not in planes
        planes[name] = lines
    return planes


def test_tensorboard_profile(box, tmp_path):
    box.prove("--quiet", "--out", tmp_path / "out", "--", box.program, "training", "20")
    file, = (tmp_path / "out" / "tensorboard" / "plugins" / "profile" / "prove").iterdir()
    assert file.name == f"{socket.gethostname()}.xplane.pb"
    planes = planes_of(file)
    device, host = sorted(planes)
    assert device.startswith("/device:GPU:0 (pid ") and host == "/host:CPU"
    events = planes[device]["Stream #7"]
    assert len(events) == 60 and sum(e[0] == "copy" for e in events) == 20
    assert {e[2] for e in events if "gemm" in e[0]} == {4_660_000_000}  # picoseconds
    thread, = planes[host]
    assert thread.startswith("pid ") and sum(e[0] == "launch" for e in planes[host][thread]) == 40


def test_profile_of_ranks(box, tmp_path):
    box.prove("--quiet", "--out", tmp_path / "out", "--", box.program, "children", "5")
    file, = (tmp_path / "out" / "tensorboard" / "plugins" / "profile" / "prove").iterdir()
    names = sorted(planes_of(file))
    assert names[0].startswith("/device:GPU:0 (rank 0 of 2, pid ") and names[1].startswith("/device:GPU:0 (rank 1 of 2, pid ")


def trace_of(path):
    """Events of a trace as Perfetto's importer wants them: it drops slices that overlap in part."""
    events = json.loads(path.read_text())["traceEvents"]
    tracks, processes = {}, {}
    for e in events:
        assert e["ph"] in ("M", "X", "C") and isinstance(e["pid"], int) and isinstance(e["name"], str)
        if e["ph"] == "X":
            tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
        if e["ph"] == "C":
            assert all(isinstance(v, (int, float)) for v in e["args"].values())
        if e["ph"] == "M" and e["name"] == "process_name":
            assert processes.setdefault(e["pid"], e["args"]["name"]) == e["args"]["name"]
    for slices in tracks.values():
        opened = []
        for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
            while opened and opened[-1] <= start + 1e-4:
                opened.pop()
            assert not opened or end <= opened[-1] + 1e-2, "slices overlap in part"
            opened.append(end)
    return events, processes


def test_perfetto_trace(box, tmp_path):
    box.prove("--quiet", "--out", tmp_path / "out", "--", box.program, "children", "5")
    events, processes = trace_of(tmp_path / "out" / "trace.json")
    assert len(processes) == 2 and all(name.startswith("rank ") for name in processes.values())
    assert sum(e["ph"] == "X" and e["tid"] >= 1 << 24 for e in events) == 2 * 15


def test_required_verdict(box, tmp_path):
    assert box.prove("--quiet", "--require", "on-gpu", "--", box.program, "training", "20").returncode == 0
    assert box.prove("--quiet", "--require", "on-gpu", "--", "true").returncode == 3
    assert box.prove("--quiet", "--require", "on-gpu", "--", "sh", "-c", "exit 5").returncode == 5
    assert box.prove("--require", "in-orbit", "--", "true").returncode == 2


def test_program_without_gpu_runs_all_the_same(box):
    done = box.prove("--", "sh", "-c", "echo done")
    assert done.stdout == "done\n" and done.returncode == 0
    assert "verdict   on-cpu" in done.stderr and "tracefire doctor" in done.stderr


def test_ranks_are_merged(box, tmp_path):
    report = report_of(box.prove("--json", "--", box.program, "children", "20"))
    assert sorted(p["rank"] for p in report["processes"]) == [0, 1]
    assert all(p["ranks"] == 2 for p in report["processes"])
    assert report["kernel_count"] == 80


CLUSTER = '{"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]}, "task": {"type": "worker", "index": 0}}'


@pytest.mark.parametrize("variables", [{"RANK": "1", "WORLD_SIZE": "3", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
                                       {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"},
                                       {"PMI_RANK": "1", "PMI_SIZE": "3"}, {"SLURM_PROCID": "1", "SLURM_NTASKS": "3"},
                                       {"JAX_PROCESS_ID": "1", "JAX_NUM_PROCESSES": "3"}, {"TF_CONFIG": CLUSTER}])
def test_every_launchers_rank(box, variables):
    process, = report_of(box.prove("--json", "--", box.program, "training", "2", **variables))["processes"]
    assert (process["rank"], process["ranks"]) == (1, 3) and process["title"].startswith("rank 1 of 3, pid ")


@pytest.mark.parametrize("variables, state", [({"TF_FAKE_CUPTI_TAKEN": "1"}, "cupti-taken"),
                                              ({"TF_FAKE_CUPTI_VERSION": "18"}, "cupti-too-old"),
                                              ({"TF_FAKE_CUPTI_FAIL": "1"}, "failed")])
def test_cupti_that_cannot_be_used(box, variables, state):
    done = box.prove("--json", "--", box.program, "training", "3", **variables)
    assert done.returncode == 0
    report = report_of(done)
    # Without NVML there is nothing to fall back to: nothing is claimed.
    assert report["verdict"] == "unknown" and report["evidence"] == "none"
    assert report["processes"][0]["tracing"] == state


def test_missing_cupti(box):
    box.cupti.unlink()
    toolkits = [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")), pathlib.Path("/usr/local/cuda")]
    if any(list(t.rglob("libcupti.so.1[23]")) for t in toolkits):
        pytest.skip("a CUDA toolkit with CUPTI is installed here")
    report = report_of(box.prove("--json", "--", box.program, "training", "3"))
    assert report["processes"][0]["tracing"] == "no-cupti"
    assert any("libcupti.so.13 was not found" in note for note in report["notes"])


def test_sampling_where_cupti_is_taken(box, tmp_path):
    """NVML of the emulator shows the GPU but no processes: the fall-back claims nothing it did not see."""
    emulator = BUILD / "tests" / "libtf_cuda_emulator.so"
    if not emulator.exists():
        pytest.skip("the emulator is not built: run make")
    (tmp_path / "nvml").mkdir()
    shutil.copy(emulator, tmp_path / "nvml" / "libnvidia-ml.so.1")
    done = box.prove("--out", tmp_path / "out", "--json", "--", box.program, "training", "60", TF_FAKE_CUPTI_TAKEN="1",
                     TRACEFIRE_CUDA_PATH=str(tmp_path / "nvml"))
    assert report_of(done)["verdict"] == "unknown"
    session = json.loads((tmp_path / "out" / "session.json").read_text())
    assert session["gpus"][0]["name"] == "Emulated GPU" and session["nvml_problem"] == ""


def test_attach_watches_from_outside(box, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: sum(range(10000))"])
    try:
        done = box.prove("--json", "--attach", process.pid, "--seconds", "1")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0
    report = report_of(done)
    assert report["verdict"] == "unknown" and report["cpu_ns"] > 0
    assert any("watched from outside" in note for note in report["notes"])
    assert box.prove("--attach", 2**22 - 1).returncode == 2


def container_arguments(box, tmp_path, name, *words, tools=()):
    """What a container program would be started with: the stand-in, for `name` or `tools`, prints its arguments."""
    (tmp_path / "tools").mkdir(exist_ok=True)
    for stand_in in tools or [name]:
        tool = tmp_path / "tools" / stand_in
        tool.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "$a"; done\n')
        tool.chmod(0o755)
    done = box.prove("--quiet", "--", name, *words, PATH=f"{tmp_path / 'tools'}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["docker", "podman", "nerdctl"])
def test_containers_get_what_they_need(box, tmp_path, name):
    words = container_arguments(box, tmp_path, name, "--context", "x", "run", "--rm", "--gpus", "all", "image", "python", "run")
    assert words[:3] == ["--context", "x", "run"] and words[-6:] == ["--rm", "--gpus", "all", "image", "python", "run"]
    added = words[3:-6]
    volumes = [added[i + 1].split(":") for i, w in enumerate(added) if w == "--volume"]
    variables = dict(added[i + 1].split("=", 1) for i, w in enumerate(added) if w == "--env")
    (library, inside_library, mode), (folder, inside_folder) = volumes
    assert pathlib.Path(library).name == "libtracefire_inject.so" and mode == "ro"
    assert variables["CUDA_INJECTION64_PATH"] == inside_library
    assert variables["TRACEFIRE_PROVE_DIR"] == inside_folder
    assert variables["TRACEFIRE_PROVE_OWNER"] == str(os.geteuid())
    assert "TRACEFIRE_PROVE_CUPTI" not in variables
    # Other sub-commands stay as they are.
    assert container_arguments(box, tmp_path, name, "ps", "-a") == ["ps", "-a"]


def container_report(box, tmp_path, *words):
    """The report on a container program whose stand-in runs nothing."""
    (tmp_path / "tools").mkdir(exist_ok=True)
    tool = tmp_path / "tools" / words[0]
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    return report_of(box.prove("--json", "--", *words, PATH=f"{tmp_path / 'tools'}:{os.environ['PATH']}"))


@pytest.mark.parametrize("words, at", [(["docker", "compose", "-f", "run", "run", "service", "python"], 4),
                                       (["docker", "-H", "run", "container", "run", "image"], 4),
                                       (["docker-compose", "--project-name", "x", "run", "service"], 3),
                                       (["nerdctl", "--namespace", "n", "run", "image"], 3)])
def test_sub_commands_are_found_behind_options(box, tmp_path, words, at):
    found = container_arguments(box, tmp_path, *words)
    assert found[:at] == words[1:at + 1] and found[at] == "--volume"
    assert found[-len(words[at + 1:]):] == words[at + 1:]


@pytest.mark.parametrize("prefix", [
    ["env", "X=1", "Y=/a b"], ["env", "-u", "X", "-C", "/", "Z=docker"], ["timeout", "-k", "5", "-s", "KILL", "60"],
    ["timeout", "--signal=TERM", "1m"], ["nice"], ["nice", "-n", "3"], ["nice", "-5"], ["nice", "--adjustment", "2"], ["stdbuf", "-oL"],
    ["stdbuf", "-o", "L", "--error=0"], ["nohup"], ["setsid", "-w"], ["env", "nice", "-n", "1", "timeout", "60", "env", "A=b"]])
@pytest.mark.parametrize("tool", ["docker", "apptainer"])
def test_containers_are_found_behind_other_programs(box, tmp_path, prefix, tool):
    words = ["run", "--rm", "image", "python"]
    found = container_arguments(box, tmp_path, prefix[0], *prefix[1:], tool, *words, tools=[tool])
    assert found[0] == "run" and found[-3:] == words[1:]
    assert any("libtracefire_inject.so" in word for word in found) and len(found) > 6


def test_sudo_is_looked_through(box, tmp_path):
    """The stand-in for sudo prints what it would run."""
    for options in ([], ["-E"], ["-u", "root", "-n"], ["--preserve-env", "--user=root"], ["-u", "docker", "A=b", "--"]):
        if options[-1:] == ["--"]:
            options = ["-u", "docker", "--", "A=b"]
        found = container_arguments(box, tmp_path, "sudo", *options, "docker", "run", "image")
        at = found.index("run")
        assert found[:at] == [*options, "docker"] and found[at + 1] == "--volume" and found[-1] == "image"
    # Without a container the variables do not pass sudo: what does is named, and works as it stands.
    report = container_report(box, tmp_path, "sudo", "-n", "python", "train.py")
    note, = (n for n in report["notes"] if "sudo" in n)
    assert report["verdict"] == "unknown" and "`sudo env python train.py`" in note
    (tmp_path / "tools" / "sudo").write_text('#!/bin/sh\nexec env -i "$@"\n')
    done = box.prove("--json", "--", "sudo", "env", box.program, "training", "3",
                     PATH=f"{tmp_path / 'tools'}:{os.environ['PATH']}")
    assert report_of(done)["kernel_count"] == 6
    # sudo -E passes them, and root may write into this user's folder.
    (tmp_path / "tools" / "sudo").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    done = box.prove("--json", "--", "sudo", "-E", "sh", "-c", 'echo "$TRACEFIRE_PROVE_OWNER $CUDA_INJECTION64_PATH" >&2',
                     PATH=f"{tmp_path / 'tools'}:{os.environ['PATH']}")
    assert done.stderr.split()[0] == str(os.geteuid()) and done.stderr.split()[1].endswith(".so")


def test_a_cleared_environment_gets_the_variables(box, tmp_path):
    for words in (["env", "-i"], ["env", "-", "A=b"], ["nice", "env", "--ignore-environment", "-u", "X"]):
        report = report_of(box.prove("--json", "--", *words, box.program, "training", "3"))
        assert report["verdict"] == "on-gpu" and report["kernel_count"] == 6, words


@pytest.mark.parametrize("words, told", [
    (["docker", "exec", "-it", "c", "python"], "enters a container that exists already"),
    (["docker", "compose", "exec", "service", "python"], "docker compose exec"),
    (["podman", "start", "c"], "podman run"),
    (["docker", "compose", "up"], "docker compose run SERVICE"),
    (["docker-compose", "-f", "x.yml", "up"], "docker-compose run SERVICE"),
    (["sudo", "docker", "exec", "c", "python"], "--print-env has the lines"),
    (["docker", "ps"], "only `docker run`"),
    (["bash", "-c", "cd /x && docker run image"], "bash starts docker"),
    (["srun", "-n", "2", "apptainer", "exec", "i.sif", "x"], "srun starts apptainer")])
def test_containers_that_cannot_be_traced_are_told_with_a_cure(box, tmp_path, words, told):
    report = container_report(box, tmp_path, *words)
    assert report["verdict"] == "unknown"
    assert any(told in note for note in report["notes"]), report["notes"]


def test_a_container_without_records_proves_nothing(box, tmp_path):
    for words, needed in ((["docker", "run", "image"], "--gpus all"), (["apptainer", "run", "image.sif"], "--nv")):
        report = container_report(box, tmp_path, *words)
        assert report["verdict"] == "unknown" and "left no" in report["reason"]
        assert any("given no GPU" in n and needed in n for n in report["notes"])
    report = container_report(box, tmp_path, "podman", "run", "--device", "nvidia.com/gpu=all", "image")
    assert not any("given no GPU" in n for n in report["notes"])
    assert any("NVreg_RestrictProfilingToAdminUsers" in n for n in report["notes"])
    for name in ("sudo", "ssh", "kubectl", "sbatch"):
        report = container_report(box, tmp_path, name, "x")
        assert report["verdict"] == "unknown"
        assert any("--print-env" in n for n in report["notes"])


def test_a_cleared_environment_proves_nothing(box, tmp_path):
    done = box.prove("--json", "--", "sh", "-c", f"exec env -i {sys.executable} -c '{BUSY}'")
    report = report_of(done)
    assert report["verdict"] == "unknown" and "could leave no records" in report["reason"]
    # Also where a process loses it on its way from one program to the next.
    becomes = f"import os; os.environ.clear(); os.execv({sys.executable!r}, ['python', '-c', {BUSY!r}])"
    report = report_of(box.prove("--json", "--", sys.executable, "-c", becomes))
    assert report["verdict"] == "unknown" and "could leave no records" in report["reason"]
    kept = report_of(box.prove("--json", "--", sys.executable, "-c", BUSY))
    assert kept["verdict"] == "on-cpu" and kept["reason"] == "no process of the program started CUDA"


def test_what_could_leave_no_records_is_named_with_the_cure(box, tmp_path):
    """Also beside a process that started CUDA and computed nothing there; not beside one that did."""
    hidden = f"env -i {sys.executable} -c {shlex.quote(BUSY)}"
    idle = report_of(box.prove("--json", "--require", "on-gpu", "--", "sh", "-c", f"{box.program} idle; {hidden}"))
    assert idle["verdict"] == "unknown" and "could leave no records" in idle["reason"] and "python" in idle["reason"]
    finding, = (a for a in idle["advice"] if "could leave no records" in a["finding"])
    assert any("--print-env" in action for action in finding["actions"])
    done = box.prove("--json", "--require", "on-gpu", "--", "sh", "-c", hidden)
    assert done.returncode == 3 and json.loads(done.stdout)["verdict"] == "unknown"


def test_what_only_starts_others_is_not_missed(box):
    """Wrappers and short helpers, whose environment was cleared, did nothing that could have been on a GPU."""
    assert report_of(box.prove("--json", "--", "timeout", "60", "nice", box.program, "training"))["verdict"] == "on-gpu"
    command = f"env -i true; timeout 60 nice {sys.executable} -c {shlex.quote(BUSY)}; env -i uname >/dev/null"
    assert report_of(box.prove("--json", "--", "sh", "-c", command))["verdict"] == "on-cpu"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_may_not_write_the_records(box, tmp_path):
    becomes = f"import os; os.setuid(65534); {BUSY}"
    report = report_of(box.prove("--json", "--require", "on-gpu", "--", "sh", "-c",
                                 f"exec {shlex.quote(sys.executable)} -c {shlex.quote(becomes)}"))
    assert report["verdict"] == "unknown" and "another user" in report["reason"]


def test_a_failed_program_is_told(box, tmp_path):
    report = report_of(box.prove("--json", "--", "sh", "-c", "kill -9 $$"))
    assert report["exit_status"] == 137
    assert "status 137" in report["advice"][0]["finding"] and "lack of memory" in report["advice"][0]["actions"][0]


def test_others_on_the_gpu_are_named(box, tmp_path):
    fake = BUILD / "tests" / "libtf_fake_nvml_new.so"
    if not fake.exists():
        pytest.skip("the scripted NVML is not built: run make")
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "libnvidia-ml.so.1").symlink_to(fake)
    other = subprocess.Popen(["sleep", "60"])
    try:
        script = {"gpus": [{"processes": [{"pid": other.pid, "memory": 5 << 30}, {"pid": 2 ** 22 + 5}]}]}
        (tmp_path / "nvml.json").write_text(json.dumps(script))
        done = box.prove("--json", "--", box.program, "training", "60", TRACEFIRE_CUDA_PATH=str(tmp_path / "driver"),
                         TF_FAKE_NVML=str(tmp_path / "nvml.json"))
    finally:
        other.kill()
        other.wait()
    report = report_of(done)
    assert {"pid": other.pid, "gpu": 0, "name": "sleep", "memory_peak": 5 << 30} in report["other_processes"]
    assert {"pid": 2 ** 22 + 5, "gpu": 0, "name": "", "memory_peak": None} in report["other_processes"]
    finding, = (a["finding"] for a in report["advice"] if "other processes" in a["finding"])
    assert "sleep" in finding and "5.00 GiB" in finding and "not visible" in finding


def test_apptainer_gets_what_it_needs(box, tmp_path):
    words = container_arguments(box, tmp_path, "apptainer", "exec", "--nv", "image.sif", "python", "x.py")
    assert words[0] == "exec" and words[1] == "--bind" and words[3] == "--env" and words[5:] == ["--nv", "image.sif", "python", "x.py"]
    binds = [b.split(":") for b in words[2].split(",")]
    assert binds[0][2] == "ro" and len(binds) == 2
    assert f"CUDA_INJECTION64_PATH={binds[0][1]}" in words[4].split(",")
    assert f"TRACEFIRE_PROVE_DIR={binds[1][1]}" in words[4].split(",")


def test_printed_variables_trace_a_program(box, tmp_path):
    out = tmp_path / "shared folder"
    done = box.prove("--print-env", "--out", out, box.program, "training", "5")
    assert done.returncode == 0
    for word in ("sudo env", "ssh HOST", "mpirun -x CUDA_INJECTION64_PATH", "srun --export=ALL", "docker run --volume", "docker exec CONTAINER", "docker cp CONTAINER:", "sbatch --export=ALL", "kubectl", "volumeMounts"):
        assert word in done.stdout
    script = done.stdout + f"\n{shlex.quote(box.program)} training 5\n"
    subprocess.run(["sh", "-c", script], check=True, env=box.environment, timeout=60)
    report = report_of(box.prove("--json", "--from", out))
    assert report["verdict"] == "on-gpu" and report["kernel_count"] == 10
    assert any("not started by `prove`" in note for note in report["notes"])
    # The line for sudo works in any shell.
    line = next(text for text in done.stdout.splitlines() if "sudo env" in text).split("sudo ", 1)[1]
    subprocess.run(["sh", "-c", line], check=True, env=box.environment, timeout=60)
    assert report_of(box.prove("--json", "--from", out))["kernel_count"] == 20


def test_damaged_records_are_told(box, tmp_path):
    box.prove("--quiet", "--out", tmp_path / "out", "--", box.program, "children", "5")
    first, second = sorted((tmp_path / "out").glob("*.sum"))
    first.write_bytes(b"nonsense")
    windows = second.with_suffix(".win")
    windows.write_bytes(windows.read_bytes()[:-5])
    report = report_of(box.prove("--json", "--from", tmp_path / "out"))
    assert len(report["processes"]) == 1
    assert report["complete"] is False
    assert any("not a whole snapshot" in reason for reason in report["incomplete"])
    assert any("torn chunk" in reason for reason in report["incomplete"])
    (tmp_path / "out" / "session.json").write_text('{"schema": "tracefire.prove.session/1", "samples": 3}')
    done = box.prove("--from", tmp_path / "out")
    assert done.returncode == 2 and "session.json is damaged" in done.stderr


def test_pipes_in_a_folder_are_not_waited_for(box, tmp_path):
    box.prove("--quiet", "--out", tmp_path / "out", "--", box.program, "training", "3")
    os.mkfifo(tmp_path / "out" / "p1-0-0.sum")
    os.mkfifo(tmp_path / "out" / "p1-0-0.ops.json")
    assert report_of(box.prove("--json", "--from", tmp_path / "out"))["kernel_count"] == 6
    (tmp_path / "out" / "session.json").unlink()
    os.mkfifo(tmp_path / "out" / "session.json")
    assert report_of(box.prove("--json", "--from", tmp_path / "out"))["kernel_count"] == 6
