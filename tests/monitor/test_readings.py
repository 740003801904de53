# SPDX-License-Identifier: Apache-2.0
"""What the monitor reads, and what it says where it cannot."""
import json
import os
import subprocess
import sys
import time

import pytest

GPU = {"name": "NVIDIA H200", "uuid": "GPU-aa", "values": {"busy": 87, "power": 612340, "memory_used": 101200166912}}


def test_numbers_and_units(machine):
    machine.script({"gpus": [GPU]})
    snapshot = machine.snapshot()
    assert list(snapshot)[0] == "schema" and snapshot["schema"] == "tracefire.monitor/1"
    assert snapshot["driver_version"] == "580.159.04" and snapshot["cuda_version"] == "13.0"
    assert snapshot["problem"] is None
    gpu = snapshot["gpus"][0]
    assert gpu["name"] == "NVIDIA H200" and gpu["uuid"] == "GPU-aa" and gpu["pci_bus_id"] == "00000000:01:00.0"
    assert gpu["compute_capability"] == "9.0"
    assert gpu["gpu_utilization_percent"] == 87
    assert gpu["sm_activity_percent"] == 71.5
    assert gpu["memory_used_bytes"] == 101200166912 and gpu["memory_total_bytes"] == 150754820096
    assert gpu["memory_reserved_bytes"] == 659554304
    assert gpu["memory_free_bytes"] == 150754820096 - 101200166912 - 659554304
    assert gpu["power_watts"] == 612.34 and gpu["power_limit_watts"] == 700
    assert gpu["energy_joules"] == 123456.789
    assert gpu["clock_sm_mhz"] == 1980 and gpu["clock_memory_mhz"] == 3201
    assert gpu["pcie_tx_bytes_per_second"] == 295.5 * 1048576
    assert gpu["nvlink_active_links"] == 18
    assert gpu["throttle_reasons"] == []
    assert gpu["fan_percent"] is None and gpu["missing"]["fan_percent"] == "not supported by this GPU"


def test_rates_of_nvlink_come_from_its_counters_without_performance_counters(machine):
    # 1 GiB in KiB after the first look.
    machine.script({"gpus": [{"values": {"gpm": 0, "nvlink_tx": 1000}}]})
    process = machine.start("--json", "--every", "500ms", "--count", "2")
    first = json.loads(process.stdout.readline())
    machine.script({"gpus": [{"values": {"gpm": 0, "nvlink_tx": 1000 + 1048576}}]})
    second = json.loads(process.stdout.readline())
    assert process.wait(20) == 0
    assert first["gpus"][0]["nvlink_tx_bytes_per_second"] is None
    assert first["gpus"][0]["missing"]["nvlink_tx_bytes_per_second"] == "needs a second sample"
    assert 1.5e9 < second["gpus"][0]["nvlink_tx_bytes_per_second"] < 2.6e9
    assert second["gpus"][0]["sm_activity_percent"] is None


def test_no_nvml(machine):
    machine.library(None)
    (machine.folder / "driver" / "libnvidia-ml.so.1").write_text("not a library")
    snapshot = machine.snapshot(status=1)
    assert snapshot["gpus"] == [] and "cannot be loaded" in snapshot["problem"]
    done = machine.run("--once")
    assert done.returncode == 1 and "No GPU:" in done.stdout


def test_nvml_that_does_not_start(machine):
    machine.script({"init": 18})
    snapshot = machine.snapshot(status=1)
    assert "Driver/library version mismatch" in snapshot["problem"] and "tracefire doctor" in snapshot["problem"]
    done = machine.run("--once", "--csv")
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 1 and "version mismatch" in done.stderr


def test_old_nvml_lacks_functions(machine):
    machine.library("old")
    machine.script({"gpus": [GPU | {"processes": [{"pid": os.getpid(), "memory": 5}]}]})
    gpu = machine.snapshot()["gpus"][0]
    # Without the newer question, what is reserved counts as used.
    assert gpu["memory_used_bytes"] == 101200166912 + 659554304
    assert gpu["memory_reserved_bytes"] is None
    assert gpu["missing"]["memory_reserved_bytes"] == "this driver's NVML does not have it"
    assert gpu["missing"]["sm_activity_percent"] == "this driver's NVML does not have it"
    assert gpu["throttle_reasons"] == []  # by its old name
    assert gpu["pcie_rx_bytes_per_second"] == 1250000 * 1000
    assert gpu["processes"][0]["sm_percent"] is None


def test_no_gpus(machine):
    machine.script({"gpus": []})
    snapshot = machine.snapshot(status=1)
    assert snapshot["gpus"] == [] and "shows no GPU" in snapshot["problem"]


def test_sixteen_gpus_in_every_form(machine):
    machine.script({"copies": 16, "gpus": [GPU]})
    gpus = machine.snapshot()["gpus"]
    assert [g["index"] for g in gpus] == list(range(16)) and len({g["uuid"] for g in gpus}) == 16
    assert len(machine.run("--once", "--csv").stdout.splitlines()) == 17
    assert machine.run("--once", COLUMNS="80").stdout.count("NVIDIA H200") == 16


def test_chosen_gpus(machine):
    machine.script({"copies": 4, "gpus": [GPU]})
    uuid = "GPU-00000000-0000-0000-0000-000000000003"
    assert [g["index"] for g in machine.snapshot("--gpus", f"1,{uuid}")["gpus"]] == [1, 3]
    snapshot = machine.snapshot("--gpus", "1,9", status=1)
    assert [g["index"] for g in snapshot["gpus"]] == [1] and snapshot["problem"] == "there is no GPU 9"


def test_one_metric_fails(machine):
    machine.script({"gpus": [GPU | {"fail": {"nvmlDeviceGetPowerUsage": 4, "nvmlDeviceGetUtilizationRates": 999}}]})
    gpu = machine.snapshot()["gpus"][0]
    assert gpu["power_watts"] is None and gpu["missing"]["power_watts"] == "no permission"
    assert gpu["gpu_utilization_percent"] is None and gpu["missing"]["gpu_utilization_percent"] == "NVML error"
    assert gpu["health"]["grade"] is None
    assert gpu["temperature_celsius"] == 54


def test_lost_gpu_beside_a_healthy_one(machine):
    machine.script({"gpus": [GPU, {"name": "NVIDIA H200", "fail": {"nvmlDeviceGetMemoryInfo": 15}}]})
    good, lost = machine.snapshot()["gpus"]
    assert not good["lost"] and good["power_watts"] == 612.34
    assert lost["lost"] and lost["power_watts"] is None and lost["missing"]["power_watts"] == "the GPU is lost"
    assert "lost: the GPU is lost" in machine.run("--once").stdout


def test_every_call_of_a_gpu_fails(machine):
    machine.script({"gpus": [{"fail": {"*": 999}}, GPU]})
    broken, good = machine.snapshot()["gpus"]
    assert broken["lost"] and good["power_watts"] == 612.34


@pytest.mark.slow
def test_nvml_fails_in_the_middle(machine):
    # Before, while and after the GPUs are first read.
    for calls, form in ((1, ["--json"]), (20, ["--csv"]), (60, []), (90, ["--metrics"]), (130, ["--json"]), (200, [])):
        machine.script({"gpus": [GPU, GPU], "fail_after": {"calls": calls, "code": 15}})
        done = machine.run("--once", *form)
        assert done.returncode in (0, 1) and (done.stdout or done.stderr), (calls, form, done.stderr)


@pytest.mark.slow
def test_nvml_comes_back(machine):
    machine.script({"gpus": [GPU]})
    process = machine.start("--json", "--every", "200ms", "--duration", "120s")
    assert json.loads(process.stdout.readline())["problem"] is None
    machine.script({"gpus": [GPU], "count_result": 9})
    deadline = time.monotonic() + 60
    while "does not answer" not in (json.loads(process.stdout.readline())["problem"] or ""):
        assert time.monotonic() < deadline
    machine.script({"gpus": [GPU]})
    deadline = time.monotonic() + 60
    while (last := json.loads(process.stdout.readline()))["problem"] is not None:
        assert time.monotonic() < deadline
    assert last["gpus"][0]["power_watts"] == 612.34
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143


@pytest.mark.slow
def test_driver_hangs(machine):
    machine.script({"gpus": [GPU], "hang": {"function": "nvmlDeviceGetPowerUsage", "seconds": 300}})
    done = machine.run("--once", "--json", timeout=120)
    assert done.returncode == 1
    assert "hangs" in json.loads(done.stdout)["problem"]


def test_mig(machine):
    instances = [{"gi": g, "ci": 0, "name": "NVIDIA H200 MIG 3g.71gb", "uuid": f"MIG-{g}",
                  "values": {"memory_total": 70e9, "memory_used": 5e9 * g, "memory_reserved": 0, "sm": 10 * g, "engine": 20 * g}}
                 for g in (1, 2)]
    machine.script({"gpus": [GPU | {"mig": instances, "fail": {"nvmlDeviceGetUtilizationRates": 3},
                                    "processes": [{"pid": os.getpid(), "memory": 7, "gi": 2, "ci": 0}]}]})
    gpu = machine.snapshot()["gpus"][0]
    assert gpu["mig_mode"] == 1 and gpu["gpu_utilization_percent"] is None
    assert [(i["gpu_instance"], i["uuid"], i["sm_activity_percent"], i["memory_used_bytes"]) for i in gpu["mig_instances"]] == [
        (1, "MIG-1", 10, 5e9), (2, "MIG-2", 20, 10e9)]
    assert gpu["processes"][0]["gpu_instance"] == 2
    text = machine.run("--once").stdout
    assert text.count("MIG 3g.71gb") == 2 and "0:2" in text
    metrics = machine.run("--metrics").stdout
    assert 'tracefire_gpu_sm_activity_ratio{gpu="0",uuid="GPU-aa",gpu_instance="2",compute_instance="0"} 0.2' in metrics


def test_processes(machine):
    child = subprocess.Popen([sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()", "an argument"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        machine.script({"gpus": [GPU | {"processes": [
            {"pid": child.pid, "memory": 1 << 30, "sm": 40}, {"pid": 4194200, "memory": 5},
            {"pid": os.getpid(), "kind": "graphics"}]}]})
        here, gone, hidden = machine.snapshot()["gpus"][0]["processes"]
    finally:
        child.kill()
        child.wait()
    assert here["pid"] == child.pid and here["memory_bytes"] == 1 << 30 and here["sm_percent"] == 40
    assert here["command"].endswith("an argument") and here["in_proc"] and here["host_cores"] is not None
    assert here["host_resident_bytes"] > 1e6
    assert not gone["in_proc"] and gone["name"] is None and gone["host_cores"] is None
    assert hidden["kind"] == "graphics" and hidden["memory_bytes"] is None


def test_process_list_that_may_not_be_read(machine):
    machine.script({"gpus": [GPU | {"fail": {"nvmlDeviceGetComputeRunningProcesses_v3": 4}}]})
    gpu = machine.snapshot()["gpus"][0]
    assert gpu["processes"] is None and gpu["missing"]["processes"] == "no permission"
    assert "Processes could not be listed: no permission." in machine.run("--once").stdout


def test_more_processes_than_are_listed(machine):
    machine.script({"gpus": [GPU | {"processes": [{"pid": 4000000 + i, "memory": i} for i in range(700)]}]})
    gpu = machine.snapshot()["gpus"][0]
    assert gpu["more_processes"] and len(gpu["processes"]) <= 512
    machine.script({"gpus": [GPU | {"processes": [{"pid": 4000000 + i, "memory": i} for i in range(300)]}]})
    gpu = machine.snapshot()["gpus"][0]
    assert not gpu["more_processes"] and len(gpu["processes"]) == 300


def test_json_lines_follow_the_clock(machine):
    done = machine.run("--json", "--every", "300ms", "--count", "6")
    times = [json.loads(line)["time"] for line in done.stdout.splitlines()]
    assert len(times) == 6 and all(t.endswith("Z") and "T" in t for t in times)
    seconds = [float(t[17:23]) for t in times]
    steps = [(b - a) % 60 for a, b in zip(seconds, seconds[1:])]
    # A machine under load makes a step longer, and the next one shorter.
    assert sum(steps) > 1.2 and min(steps) < 0.9


def test_a_query_asks_for_no_more_than_its_fields_need(machine):
    """What takes the driver tens of milliseconds is not asked: it would hang here."""
    for function in ("nvmlDeviceGetPcieThroughput", "nvmlDeviceGetNvLinkState", "nvmlGpmSampleGet", "nvmlEventSetCreate",
                     "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetProcessUtilization"):
        machine.script({"hang": {"function": function, "seconds": 30}})
        begun = time.monotonic()
        done = machine.run("--query-gpu=name,utilization.gpu,memory.used,pcie.link.gen.max,clocks.max.sm,power.max_limit,mig.mode.current",
                           "--format=csv,noheader,nounits")
        assert done.returncode == 0 and time.monotonic() - begun < 15, function
        assert done.stdout == "NVIDIA H200, 87, 96512, 5, 1980, 700.00, Disabled\n", done.stdout
