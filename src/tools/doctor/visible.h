// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs the variable CUDA_VISIBLE_DEVICES leaves to a process.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/machine.h"

namespace tracefire::doctor {

/// What CUDA makes of the variable (CUDA C++ Programming Guide, "Environment Variables"): numbers
/// and beginnings of UUIDs, of which only those before the first that names no GPU count. A GPU
/// that comes twice makes cuInit fail (error 101, measured with driver 580).
struct VisibleDevices {
  bool set = false;          ///< the variable exists
  std::string shown;         ///< its value for people, "empty" where it is
  std::vector<size_t> gpus;  ///< numbers in Machine::gpus, in CUDA's order; all where it is not set
  size_t entries = 0;        ///< of the value, up to the one that ends it
  bool hides_all = false;
  /// A sentence: why all, or those from one entry on, are hidden; empty where none is.
  std::string reason;
};
VisibleDevices visible_devices(const Machine& machine);

/// The GPUs that a process sees; all of the machine where it sees none, so that what is said of
/// them is still of some.
std::vector<Gpu> visible_gpus(const Machine& machine);

}  // namespace tracefire::doctor
