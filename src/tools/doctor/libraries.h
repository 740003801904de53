// SPDX-License-Identifier: Apache-2.0
//
// Which file a framework gets for each library it opens, in the loader's order.
#pragma once

#include "tools/doctor/frameworks.h"

namespace tracefire::doctor {

/// Fills framework->needed.
void resolve_needed(const Root& root, const Machine& machine, const Data& data,
                    const Environment& env, Framework* framework);

/// "libcudnn" of "libcudnn.so.9".
std::string stem_of(const std::string& soname);
/// pip's distributions that bring a library, by normal name: nvidia-cudnn-cu12, nvidia-cudnn-cu13 …
std::vector<const Dist*> pip_owners(const Environment& env, const std::string& soname);
/// Version of CUDA's toolkit to which a folder belongs: from version.json beside it, else from its
/// name; "" where neither tells.
std::string toolkit_version(const Root& root, const std::string& library_dir);

}  // namespace tracefire::doctor
