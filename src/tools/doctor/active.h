// SPDX-License-Identifier: Apache-2.0
//
// Which of the environments is the one that programs run in, and which are none of this machine's.
#pragma once

#include "tools/doctor/environments.h"

namespace tracefire::doctor {

/// The environment of an interpreter: its own folder, else the one that it is a link to.
std::string prefix_of_python(const Root& root, const std::string& python);
/// Sets Environment::stray and run_as: copies of other trees, moved environments, and on a running
/// machine those that another user could have put there.
void mark_stray(const Root& root, const Machine& machine, std::vector<Environment>* all);
/// Sets Environment::active: VIRTUAL_ENV, CONDA_PREFIX, pyenv's choice, the first Python of PATH.
void mark_active(const Root& root, const Machine& machine, std::vector<Environment>* all);
/// Puts the folders of PYTHONPATH before the packages of the active environment, or of each where
/// none is active.
void add_python_path(const Root& root, const Machine& machine, std::vector<Environment>* all);

}  // namespace tracefire::doctor
