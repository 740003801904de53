# SPDX-License-Identifier: Apache-2.0
"""Devices, settings, the proof and the placement log."""

import json

import pytest

core = pytest.importorskip("tracefire._core")
ops = core.ops


def test_devices():
    devices = core.list_devices()
    assert "/CPU:0" in devices
    assert core.default_device() == devices[0]
    gpus = [d for d in devices if d.startswith("/GPU")]
    assert bool(core.why_no_gpu()) != bool(gpus)
    assert [d["device"] for d in core.device_details()] == devices
    assert isinstance(core.library_report(), str)
    info = core.memory_info("/CPU:0")
    assert set(info) == {"in_use", "peak", "reserved", "limit"}
    assert core.memory_info()["peak"] >= core.memory_info()["in_use"]


def test_device_scopes():
    with core.device_scope("cpu:0"):
        x = core.tensor([1.0])
        y = ops.add(x, x)
    assert x.device == y.device == "/CPU:0"
    assert x.to("/CPU:0") is not None and x.to("/CPU:0").device == "/CPU:0"
    assert core.tensor([1.0], device="/CPU:0").device == "/CPU:0"
    with pytest.raises(ValueError, match="TF-E0201"):
        core.device_scope("toaster:0")
    with pytest.raises(ValueError, match="TF-E0201"):
        core.device_scope(0)
    scope = core.device_scope("/CPU:0")
    with scope, scope:
        assert core.tensor(1).device == "/CPU:0"


def test_name_scopes():
    with core.TraceScope() as scope:
        x = scope.parameter((), "float32")
        with core.name_scope("dense"), core.name_scope("inner"):
            y = ops.exp(x)
        function = scope.finish([y])
    assert "dense/inner" in function.text()


def test_settings():
    before = core.get_setting("device_policy")
    core.set_soft_device_placement(False)
    assert core.get_setting("device_policy") == "strict"
    core.set_soft_device_placement(True)
    assert core.get_setting("device_policy") == "soft"
    core.set_setting("device_policy", before)
    nodes = core.get_setting("max_pending_nodes")
    assert isinstance(nodes, int)
    core.set_setting("max_pending_nodes", nodes)
    assert core.get_setting("verify_graphs") in (True, False)
    with pytest.raises(ValueError, match="TF-E0503"):
        core.set_setting("device_policy", "harsh")
    with pytest.raises(ValueError, match="TF-E0503"):
        core.get_setting("no_such_setting")


def test_proof_counts_what_ran():
    core.reset_proof()
    x = core.tensor([[1.0, 2.0], [3.0, 4.0]], device="/CPU:0")
    for _ in range(3):
        product = ops.matmul(x, x)
        product.numpy()
    proof = core.proof()
    rows = [r for r in proof.rows if r.op == "matmul"]
    assert sum(r.runs for r in rows) == 3
    assert {r.device for r in rows} == {product.device}
    assert proof.verdict in ("on-gpu", "partly-on-gpu", "on-cpu")
    parsed = json.loads(proof.json())
    assert parsed["verdict"] == proof.verdict
    assert "matmul" in str(proof)
    assert "matmul" in repr(rows[0])


def test_placement_log(capfd):
    core.set_log_device_placement(True)
    try:
        assert core.get_setting("log_device_placement") is True
        ops.add(core.tensor(1.0), core.tensor(2.0)).numpy()
    finally:
        core.set_log_device_placement(False)
    text = capfd.readouterr().err
    ops.add(core.tensor(1.0), core.tensor(2.0)).numpy()
    assert "CPU:0" in text or "GPU:0" in text
    assert capfd.readouterr().err == ""
