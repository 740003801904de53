// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "backends/api/device_backend.h"

namespace tracefire {

/// The contract of collectives (NCCL on GPUs; shared memory, Gloo or MPI on CPUs). Start and done
/// come in pairs so that work can run between them. No backend implements it yet.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sums `elements` numbers of `dtype` over all ranks into `target`, on `stream`.
  virtual Status all_reduce_start(Stream& stream, const void* source, void* target,
                                  size_t elements, DType dtype) = 0;
  virtual Status all_reduce_done(Stream& stream) = 0;
  /// Compares a hash of the collective sequence over all ranks before the first run.
  virtual Status agree(uint64_t sequence_hash) = 0;
};

}  // namespace tracefire
