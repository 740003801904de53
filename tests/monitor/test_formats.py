# SPDX-License-Identifier: Apache-2.0
"""JSON by its schema, CSV, nvidia-smi's columns, Prometheus, logs, and text that comes from outside."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import COMMIT

ROOT = pathlib.Path(__file__).parents[2]
GPU = {"name": "NVIDIA H200", "uuid": "GPU-aa", "values": {"busy": 87, "power": 612340, "memory_used": 101200166912}}
EVIL = "\x1b[2J<script>alert(1)</script>\u202e,\"=cmd\\\n"


def check_schema(schema, value, where="$"):
    """The part of JSON Schema that schema/cli/monitor.json uses, strictly: unknown members are errors."""
    known = {"$schema", "$id", "title", "description", "type", "properties", "required", "additionalProperties",
             "items", "const", "enum", "$defs", "$ref", "pattern"}
    assert set(schema) <= known, f"{where}: this check does not know {set(schema) - known}"
    if "$ref" in schema:
        return check_schema(check_schema.root["$defs"][schema["$ref"].split("/")[-1]], value, where)
    if "const" in schema:
        assert value == schema["const"], where
    if "enum" in schema:
        assert value in schema["enum"], f"{where}: {value}"
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
             "integer": int, "number": (int, float)}
    if types:
        fits = [t for t in types if isinstance(value, kinds[t]) and not (isinstance(value, bool) and t in ("integer", "number"))]
        assert fits, f"{where}: {value!r} is not {types}"
    if isinstance(value, str) and "pattern" in schema:
        assert re.fullmatch(schema["pattern"], value), f"{where}: {value}"
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        assert set(schema.get("required", [])) <= set(value), f"{where}: {set(schema.get('required', [])) - set(value)} missing"
        for name, member in value.items():
            if name in properties:
                check_schema(properties[name], member, f"{where}.{name}")
            else:
                extra = schema.get("additionalProperties", True)
                assert extra is not False, f"{where}: {name} is not in the schema"
                if isinstance(extra, dict):
                    check_schema(extra, member, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            check_schema(schema["items"], item, f"{where}[{i}]")


def published(name):
    check_schema.root = json.loads((ROOT / "schema" / "cli" / name).read_text())
    return check_schema.root


def test_json_is_what_the_schema_says(machine):
    schema = published("monitor.json")
    check_schema(schema, json.loads(machine.run("--once", "--json", "--alerts", "all").stdout))
    machine.script({"gpus": [GPU | {"processes": [{"pid": os.getpid(), "memory": 1, "sm": 3}, {"pid": 4194200}],
                                    "mig": [{"gi": 1, "ci": 0, "name": "MIG 1g.18gb", "uuid": "MIG-1"}]},
                             {"fail": {"nvmlDeviceGetMemoryInfo": 15}}, {"values": {"memory_used": 149e9, "memory_reserved": 0}}]})
    snapshot = json.loads(machine.run("--once", "--json", "--alerts", "all").stdout)
    check_schema(schema, snapshot)
    assert snapshot["alerts"][0]["alert"] in ("gpu_lost", "memory_nearly_full")
    machine.script({"init": 9})
    check_schema(schema, json.loads(machine.run("--once", "--json").stdout))
    # Every number that a GPU has is described, and nothing that it has not.
    gpu = set(snapshot["gpus"][0])
    assert gpu == set(schema["$defs"]["gpu"]["properties"])


def test_csv_is_read_back(machine):
    machine.script({"gpus": [GPU, GPU | {"name": EVIL, "uuid": "GPU-bb"}]})
    rows = list(csv.DictReader(io.StringIO(machine.run("--once", "--csv").stdout)))
    assert [r["uuid"] for r in rows] == ["GPU-aa", "GPU-bb"]
    assert rows[0]["memory_used_bytes"] == "101200166912" and rows[0]["power_watts"] == "612.340"
    assert rows[0]["fan_percent"] == "" and rows[0]["time"].endswith("Z")
    assert "\x1b" not in rows[1]["name"] and "\n" not in rows[1]["name"]


def test_query_gpu_prints_the_columns_of_nvidia_smi(machine):
    machine.script({"gpus": [GPU]})
    fields = "timestamp,name,utilization.gpu,memory.used"
    done = machine.run(f"--query-gpu={fields}", "--format=csv")
    header, row = done.stdout.splitlines()
    assert header == "timestamp, name, utilization.gpu [%], memory.used [MiB]"
    assert re.fullmatch(r"20\d\d/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}, NVIDIA H200, 87 %, 96512 MiB", row)
    row = machine.run(f"--query-gpu={fields}", "--format=csv,noheader,nounits").stdout
    assert re.fullmatch(r"\S+ \S+, NVIDIA H200, 87, 96512\n", row)


@pytest.mark.parametrize("case", json.loads((ROOT / "tests/monitor/data/nvidia_smi_query.json").read_text()),
                         ids=lambda case: case["about"])
def test_query_gpu_against_recorded_text(machine, case):
    machine.script(case["script"])
    done = machine.run(f"--query-gpu={case['fields']}", f"--format={case['format']}")
    assert done.stdout.splitlines() == case["text"]


def test_query_gpu_knows_every_field_of_nvidia_smi(machine):
    """Names, other names and headers, as `nvidia-smi --help-query-gpu` of drivers 590 to 610 and its CSV have them."""
    fields = json.loads((ROOT / "tests/monitor/data/nvidia_smi_fields.json").read_text())
    machine.script({"driver": "610.57.04", "gpus": [GPU]})
    for column in (0, 1):
        asked = [f for f in fields if f[column]]
        done = machine.run("--query-gpu=" + ",".join(f[column] for f in asked), "--format=csv")
        header, row = done.stdout.splitlines()
        assert header.split(", ") == [f[2] for f in asked]
        assert len(row.split(", ")) == len(asked)
    # What is never read is said, and names of before driver 535 still serve.
    assert "not read here, shown as [N/A]: " in machine.run("--query-gpu=hostname", "--format=csv").stderr
    old = machine.run("--query-gpu=clocks_throttle_reasons.hw_slowdown", "--format=csv").stdout
    assert old == "clocks_event_reasons.hw_slowdown\nNot Active\n"


def test_query_gpu_counts_of_each_place(machine):
    machine.script({"gpus": [GPU]})
    fields = ("ecc.errors.corrected.volatile.dram,ecc.errors.uncorrected.volatile.device_memory,ecc.errors.uncorrected.aggregate.sram,"
              "ecc.errors.uncorrected.volatile.sram.secded,ecc.errors.uncorrected.aggregate.sram.mcu,"
              "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded,retired_pages.sbe,retired_pages.dbe,"
              "encoder.stats.averageFps,utilization.jpeg,utilization.ofa,fabric.clusterUuid,protected_memory.used,"
              "clocks_event_reasons_counters.sw_power_cap,clocks.applications.memory")
    done = machine.run(f"--query-gpu={fields}", "--format=csv,noheader")
    assert done.stdout.strip().split(", ") == [
        "2", "1002", "1107", "5", "10", "Yes", "3", "4", "60", "7 %", "[N/A]", "00010203-0405-0607-0809-0a0b0c0d0e0f", "1 MiB",
        "2500 us", "3000 MHz"]
    machine.library("old")  # an NVML that lacks all of them
    done = machine.run(f"--query-gpu={fields}", "--format=csv,noheader")
    assert done.returncode == 0 and set(done.stdout.strip().split(", ")) == {"[N/A]", "N/A"}


@pytest.mark.parametrize("action, word", [(0, "None"), (1, "Reset"), (2, "Reboot"), (4, "Drain and Reset"), (9, "[Unknown Error]")])
def test_query_gpu_recovery_action(machine, action, word):
    machine.script({"gpus": [GPU | {"values": {"recovery_action": action}}]})
    done = machine.run("--query-gpu=gpu_recovery_action", "--format=csv")
    assert done.stdout == f"gpu_recovery_action\n{word}\n" and done.stderr == ""


def test_query_gpu_wrong_usage(machine):
    done = machine.run("--query-gpu=name,utilisation.gpu", "--format=csv")
    assert done.returncode == 2 and not done.stdout
    assert 'Field "utilisation.gpu" is not a valid field to query. Did you mean utilization.gpu?' in done.stderr
    assert machine.run("--query-gpu=name").returncode == 2
    assert machine.run("--query-gpu=name", "--format=xml").returncode == 2
    assert machine.run("--query-gpu=name", "--format=noheader").returncode == 2
    assert "utilization.gpu [%]" in machine.run("--help-query-gpu").stdout


def test_query_gpu_of_a_lost_and_a_forbidden_gpu(machine):
    machine.script({"gpus": [{"fail": {"nvmlDeviceGetPowerUsage": 4}}, {"fail": {"nvmlDeviceGetMemoryInfo": 15}}]})
    done = machine.run("--query-gpu=index,power.draw,fan.speed", "--format=csv,noheader")
    assert done.stdout.splitlines() == ["0, [Insufficient Permissions], [N/A]", "1, [GPU is lost], [GPU is lost]"]


NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
SAMPLE = re.compile(r'([a-zA-Z_]\w*)(?:\{(.*)\})? (-?(?:\d+\.?\d*(?:e[+-]?\d+)?|NaN|[+-]?Inf))$')
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


def parse_exposition(text):
    """The text format 0.0.4, strictly: HELP and TYPE once and first, one block a family, no series twice."""
    assert text.endswith("\n")
    families, series, current = {}, {}, None
    lines = text.split("\n")[:-1]
    for i, line in enumerate(lines):
        if line.startswith("# HELP "):
            name, words = line[7:].split(" ", 1)
            assert NAME.fullmatch(name) and name not in families and words, line
            assert lines[i + 1].startswith(f"# TYPE {name} "), line
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert kind in ("counter", "gauge"), line
            assert kind != "counter" or current.endswith("_total") or current.startswith("DCGM_"), line
            assert kind != "gauge" or not current.endswith("_total"), line
            families[current] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, f"line {i + 1}: {line!r}"
            assert match[1] == current, f"{line} stands outside of its family"
            labels = LABEL.findall(match[2] or "")
            assert "".join(f'{k}="{v}",' for k, v in labels).rstrip(",") == (match[2] or ""), line
            assert len({k for k, _ in labels}) == len(labels), line
            key = (match[1], tuple(sorted(labels)))
            assert key not in series, f"{line} twice"
            series[key] = float(match[3])
    return families, series


def test_metrics(machine):
    machine.script({"gpus": [GPU | {"values": GPU["values"] | {"throttle": 0x24}}, {"name": EVIL, "uuid": 'GPU-"\\\n'}]})
    families, series = parse_exposition(machine.run("--metrics").stdout)
    gpu = (("gpu", "0"), ("uuid", "GPU-aa"))
    assert series[("tracefire_gpu_utilization_ratio", gpu)] == 0.87
    assert series[("tracefire_gpu_memory_used_bytes", gpu)] == 101200166912
    assert series[("tracefire_gpu_energy_joules_total", gpu)] == 123456.789
    assert series[("tracefire_gpu_clock_hertz", (("clock", "sm"),) + gpu)] == 1980e6
    assert series[("tracefire_gpu_throttled", gpu[:1] + (("reason", "sw_power_cap"),) + gpu[1:])] == 1
    assert series[("tracefire_gpu_throttled", gpu[:1] + (("reason", "hw_slowdown"),) + gpu[1:])] == 0
    (_, labels), = (key for key in series if key[0] == "tracefire_build_info")
    assert dict(labels)["version"] == "0.1.0" and re.fullmatch(COMMIT, dict(labels)["commit"])
    assert not any(name.startswith("DCGM") for name in families)
    # What the GPU does not tell is left out, not zero.
    assert "tracefire_gpu_fan_speed_ratio" not in families
    for name, kind in families.items():
        for wrong in ("percent", "_mib", "_mhz", "milli", "_ms", "_kb"):
            assert wrong not in name.lower() or name.startswith("DCGM"), name


def test_metrics_do_not_grow_with_processes(machine):
    machine.script({"gpus": [GPU]})
    few = parse_exposition(machine.run("--metrics").stdout)[1]
    machine.script({"gpus": [GPU | {"processes": [{"pid": 4000000 + i, "memory": 1, "sm": 1} for i in range(200)]}]})
    many = parse_exposition(machine.run("--metrics").stdout)[1]
    assert few.keys() == many.keys()
    assert many[("tracefire_gpu_processes", (("gpu", "0"), ("uuid", "GPU-aa")))] == 200


def test_dcgm_names(machine):
    machine.script({"gpus": [GPU]})
    families, series = parse_exposition(machine.run("--metrics", "--dcgm-names").stdout)
    values = {name: v for (name, labels), v in series.items() if name.startswith("DCGM")}
    assert values["DCGM_FI_DEV_GPU_UTIL"] == 87 and values["DCGM_FI_DEV_FB_USED"] == 101200166912 / 1048576
    assert values["DCGM_FI_DEV_SM_CLOCK"] == 1980 and values["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] == pytest.approx(123456789)
    assert values["DCGM_FI_PROF_SM_ACTIVE"] == 0.715
    assert families["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] == "counter"


def test_metrics_without_nvml(machine):
    machine.script({"init": 9})
    done = machine.run("--metrics")
    assert done.returncode == 1
    assert parse_exposition(done.stdout)[1][("tracefire_monitor_nvml_up", ())] == 0


def test_promtool_agrees(machine):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    text = machine.run("--metrics", "--dcgm-names").stdout
    assert subprocess.run(["promtool", "check", "metrics"], input=text, text=True).returncode == 0


def test_names_from_outside_do_nothing_anywhere(machine, tmp_path):
    # A process may choose its name and its arguments.
    script = tmp_path / "evil.py"
    script.write_text("import ctypes, sys\nctypes.CDLL(None).prctl(15, b'\\x1b[2J<b>\\xff', 0, 0, 0)\nprint('up', flush=True)\nsys.stdin.read()\n")
    child = subprocess.Popen([sys.executable, str(script), EVIL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        machine.script({"gpus": [GPU | {"name": EVIL, "processes": [{"pid": child.pid, "memory": 1 << 30}]}]})
        log = tmp_path / "log.csv"
        texts = {"text": machine.run("--once", "--color=never"), "json": machine.run("--once", "--json"),
                 "csv": machine.run("--once", "--csv"), "metrics": machine.run("--metrics"),
                 "query": machine.run("--query-gpu=name", "--format=csv,noheader"),
                 "log": machine.run("--log", str(log), "--count", "1", "--alerts", "all")}
    finally:
        child.kill()
        child.wait()
    for name, done in texts.items():
        for stream in (done.stdout, done.stderr):
            assert "\x1b" not in stream and "\u202e" not in stream, name
    assert len(texts["query"].stdout.splitlines()) == 1
    process = json.loads(texts["json"].stdout)["gpus"][0]["processes"][0]
    assert process["name"] == "\\x1b[2J<b>\ufffd" and "\\x0a" in process["command"]
    assert len(list(csv.reader(log.open()))) == 2


def test_log_rotates(machine, tmp_path):
    log = tmp_path / "gpu.csv"
    done = machine.run("--log", str(log), "--every", "50ms", "--count", "30", "--log-size", "4kB", "--log-keep", "2")
    assert done.returncode == 0 and done.stdout == ""
    files = sorted(p.name for p in tmp_path.glob("gpu.csv*"))
    assert files == ["gpu.csv", "gpu.csv.1", "gpu.csv.2"]
    for name in files:
        text = (tmp_path / name).read_text()
        assert len(text) <= 4000 and text.endswith("\n") and text.startswith("time,host,index,")
        assert all(len(r) == len(next(csv.reader(io.StringIO(text)))) for r in csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("option", ["--gpus", "--serve", "--every", "--alerts", "--query-gpu", "--webhook", "--log", "--colour"])
def test_messages_about_arguments_do_nothing_to_a_terminal(machine, option):
    machine.script({"gpus": [GPU]})
    value = "/nowhere/\x1b[2J\u202e" if option == "--log" else "\x1b[2J\u202e"
    done = machine.run(option, value, "--format=csv" if option == "--query-gpu" else "--json", "--count", "1")
    assert done.returncode in (1, 2) and "tracefire: error: " in done.stderr
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", done.stderr)


def test_log_is_for_this_user_alone(machine, tmp_path):
    machine.script({"gpus": [GPU]})
    old = os.umask(0)
    try:
        for name in ("gpu.csv", "gpu.jsonl"):
            assert machine.run("--log", str(tmp_path / name), "--every", "50ms", "--count", "2").returncode == 0
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)


def test_log_goes_on_after_it_was_moved_away(machine, tmp_path):
    log = tmp_path / "gpu.jsonl"
    process = machine.start("--log", str(log), "--every", "100ms", "--duration", "3s")
    while not log.exists() or not log.stat().st_size:
        pass
    log.rename(tmp_path / "moved")
    assert process.wait(20) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines and lines[0]["schema"] == "tracefire.monitor/1"
    assert all(json.loads(line) for line in (tmp_path / "moved").read_text().splitlines())


def test_log_that_cannot_be_written(machine, tmp_path):
    done = machine.run("--log", str(tmp_path / "no" / "such.csv"), "--count", "1")
    assert done.returncode == 2 and "cannot be opened" in done.stderr
    done = machine.run("--log", "/dev/full", "--count", "1")
    assert done.returncode == 2 and "no plain file" in done.stderr


def test_a_reader_that_goes_away(machine):
    machine.script({"copies": 16})
    shell = f"{machine_program()} --json --every 50ms | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], env=machine.environment(), capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == "141" and done.stderr == ""


def machine_program():
    import conftest
    return conftest.PROGRAM


@pytest.mark.parametrize("arguments", [["--jsn"], ["--every", "0"], ["--every", "soon"], ["--json=1"], ["--once", "--serve"],
                                       ["--json", "--csv"], ["--alerts", "nothing"], ["--serve", "localhost:99999"], ["--log"],
                                       ["--webhook", "https://example.org/"], ["--webhook", "ftp://x"], ["--count", "-1"],
                                       ["--color", "pink"], ["--format", "csv"], ["--gpus", ","], ["extra"], ["--gpus", "x,,1"], ["--gpus", "0,"],
                                       ["--gpus", "GPU-"], ["--gpus", "0,-1"], ["--gpus", "12345678901"]])
def test_wrong_usage(machine, arguments):
    done = machine.run(*arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("tracefire: error: ")
    assert len(done.stderr.splitlines()) == 2  # what is wrong, and where to look


def test_help(machine):
    done = machine.run("--help")
    assert done.returncode == 0 and done.stderr == ""
    assert all(word in done.stdout for word in ("examples:", "--serve", "--query-gpu", "127.0.0.1:9422", "Exit status"))
    assert max(map(len, done.stdout.splitlines())) <= 130


def test_colors(machine):
    assert "\x1b[" not in machine.run("--once").stdout  # stdout is no terminal
    assert "\x1b[" in machine.run("--once", "--color=always").stdout
    plain = machine.run("--once", "--color=never", LANG="C", LC_CTYPE="C").stdout
    assert plain.isascii()
