// SPDX-License-Identifier: Apache-2.0
//
// From what was read to the facts that rules ask for.
#pragma once

#include "tools/doctor/environments.h"
#include "tools/doctor/facts.h"
#include "tools/doctor/frameworks.h"
#include "tools/doctor/machine.h"

namespace tracefire::doctor {

/// Facts of the whole machine. `environments` tells whether any framework is there at all.
Facts machine_facts(const Root& root, const Machine& machine, const Data& data,
                    const std::vector<Environment>& environments);
/// What a log says: "log.…", each with the line that says it.
void log_facts(const Machine& machine, const Data& data, Facts* facts);
/// What the driver's tools and the kernel's log say: GPUs held, throttled, Xid, ECC, MIG …
void measured_facts(const Machine& machine, const Data& data, Facts* facts);
/// How a GPU was used while somebody looked: samples of nvidia-smi, a report of prove or of the
/// monitor.
void use_facts(const Machine& machine, Facts* facts);
/// Commands of this system, of the host in a container: "cmd.driver" …
void command_facts(const Machine& machine, const Data& data, Facts* facts);
/// Installs a driver of the branch `least` or newer that knows the GPU; 0 for any new one.
std::string driver_command(const Machine& machine, const Data& data, const Facts& facts, int least);

/// Facts of one environment, put over the machine's.
Facts environment_facts(const Facts& machine_facts, const Environment& env,
                        const std::vector<Framework>& frameworks);
/// The CUDA libraries of a framework on Windows, by the names of their DLLs.
void windows_library_facts(const Root& root, const Machine& machine, const Environment& env,
                           const Framework& framework, Facts* facts);
/// The Keras that TensorFlow asks for; the framework that Keras computes with.
void keras_facts(const Root& root, const Machine& machine, const Data& data, const Environment& env,
                 const std::vector<Framework>& all, const Framework& framework, Facts* facts);
/// Facts of one framework in it, put over the environment's.
Facts framework_facts(const Facts& environment_facts, const Root& root, const Machine& machine,
                      const Data& data, const Environment& env, const std::vector<Framework>& all,
                      const Framework& framework);

}  // namespace tracefire::doctor
