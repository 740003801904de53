// SPDX-License-Identifier: Apache-2.0
//
// Facts that need all environments at once.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/environments.h"
#include "tools/doctor/facts.h"
#include "tools/doctor/frameworks.h"

namespace tracefire::doctor {

/// An environment and its frameworks.
struct Surveyed {
  Environment env;
  std::vector<Framework> frameworks;
};

/// `asked` is what --framework named, "" for none; `release` its version. Where nobody asked, a log
/// in which pip finds no wheel of a framework that is nowhere asks for it.
void request_facts(const Root& root, const Machine& machine, const Data& data,
                   const std::vector<Surveyed>& all, std::string asked, std::string release,
                   Facts* facts);
/// Whether a Jupyter kernel runs another environment than the one that has the framework.
void kernel_facts(const Root& root, const Machine& machine, const std::vector<Surveyed>& all,
                  Facts* facts);
/// The wheels that exist for an environment's Python; its facts are in `facts`.
void python_facts(const Data& data, const Surveyed& surveyed, Facts* facts);
/// "tensorflow[and-cuda]" of "tensorflow".
std::string install_words(const std::string& framework);

}  // namespace tracefire::doctor
