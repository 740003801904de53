# SPDX-License-Identifier: Apache-2.0
"""Strict and soft placement from the setting to the verdict, on a machine that has a GPU."""

import emulated_gpu
import pytest


@pytest.mark.slow
def test_a_masked_operation_falls_back_and_lowers_the_verdict_or_is_refused():
    seen = emulated_gpu.run(
        """
def work():
    x = core.tensor(np.ones((8, 8), "float32"))
    core.reset_proof()
    core.ops.matmul(core.ops.sin(x), x).numpy()
    proof = core.proof()
    placements = {row["op"]: row["placement"] for row in json.loads(proof.json())["rows"]}
    return [proof.verdict, placements["sin"], placements["matmul"]]

seen = [work()]
core.mask_ops("GPU", ["sin"])
seen.append(work())
core.set_soft_device_placement(False)
try:
    work()
    seen.append("nothing was refused")
except Exception as error:
    seen.append(str(error)[:60])
with core.TraceScope() as scope:
    inside = scope.parameter((8, 8), "float32")
    function = scope.finish([core.ops.sin(inside)])
try:
    function(core.tensor(np.ones((8, 8), "float32")))
    seen.append("nothing was refused")
except Exception as error:
    seen.append(str(error)[:60])
core.set_soft_device_placement(True)
seen.append(function(core.tensor(np.ones((8, 8), "float32")))[0].device)
core.mask_ops("GPU", [])
seen.append(work())
answer(seen)
"""
    )
    whole = ["on-gpu", "on device", "on device"]
    assert seen[0] == whole
    assert seen[1] == ["partly-on-gpu", "fallen back", "on device"]
    assert seen[2].startswith("[TF-E0202]") and seen[3].startswith("[TF-E0202]")
    assert seen[4] in ("/CPU:0", "/GPU:0")
    assert seen[5] == whole
