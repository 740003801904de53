// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tracefire {

/// Prints each executed step in TensorFlow's words on stderr:
///   Executing op MatMul in device /job:localhost/replica:0/task:0/device:GPU:0
/// and says why where a step fell back to the CPU or belongs on the host. Idempotent.
void start_placement_log();
void stop_placement_log();

}  // namespace tracefire
