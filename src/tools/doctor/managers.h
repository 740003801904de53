// SPDX-License-Identifier: Apache-2.0
//
// Which Python the managers of versions and projects run: pyenv, asdf, mise, and the environments
// that uv, poetry, pdm and pixi keep in a project.
#pragma once

#include <string>

#include "tools/doctor/machine.h"

namespace tracefire::doctor {

/// A Python that something chose; an empty prefix is none.
struct ChosenPython {
  std::string prefix;
  std::string proof;  ///< a sentence
};

/// What the commands in a folder of shims run. `managed` tells whether it is one.
ChosenPython python_of_shims(const Root& root, const Machine& machine, const std::string& folder,
                             bool* managed);
/// What PYENV_VERSION, ASDF_PYTHON_VERSION or MISE_PYTHON_VERSION name, where no PATH is known.
/// `hint` is a prefix that tells where the manager's folder is.
ChosenPython python_of_variables(const Root& root, const Machine& machine, const std::string& hint);
/// The environment of the project around the working folder.
ChosenPython python_of_project(const Root& root, const Machine& machine);
/// Environment of one tool by its path: "pipx", "uv tool", "tox" …; "" for others.
std::string tool_manager(const std::string& prefix);

}  // namespace tracefire::doctor
