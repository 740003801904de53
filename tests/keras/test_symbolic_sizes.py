# SPDX-License-Identifier: Apache-2.0
"""Sizes that are symbols while a function is traced, on a GPU."""

import emulated_gpu
import pytest


@pytest.mark.slow
def test_a_symbolic_size_as_a_value_stays_on_the_gpu():
    """The mean's gradient divides by the number of elements: that is no work for the CPU."""
    seen = emulated_gpu.run(
        """
core.set_soft_device_placement(False)
with core.TraceScope() as scope:
    x = scope.parameter((None, 2), "float32")
    loss = core.ops.reduce_mean(core.ops.square(x), axes=[0, 1])
    function = scope.finish(core.gradients([loss], [x]))
core.reset_proof()
grads = [function(np.full((rows, 2), 3, "float32"))[0].tolist() for rows in (1, 3)]
proof = core.proof()
answer([grads, proof.verdict, sorted({row.device for row in proof.rows}), function.program_text()])
"""
    )
    grads, verdict, devices, text = seen
    assert grads == [[[3.0, 3.0]], [[1.0, 1.0]] * 3]
    assert verdict == "on-gpu" and devices == ["/GPU:0"]
    assert "extent() @/GPU:0 kernel cuda_extent" in text and "not capturable" not in text
