// SPDX-License-Identifier: Apache-2.0
//
// What a machine, an image, a report or a manifest is made of, under names that are the same for
// all of them: "driver", "GPU 0 model", "package tensorflow", "library cuDNN", "variable NAME".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/doctor/data.h"
#include "tools/doctor/read/document.h"

namespace tracefire::doctor {

struct Snapshot {
  std::string source;  ///< as it was named on the command line
  std::string form;    ///< "machine", "tree", "report", "manifest"
  std::map<std::string, std::string> values;
  std::string environment;  ///< the Python environment whose packages are listed, "" for none
};

/// From the sentences of a report's inventory. Of several environments the active one is taken,
/// else the first that has a framework.
void read_inventory(const std::vector<std::string>& lines, Snapshot* snapshot);
/// From a manifest's values.
void read_manifest(const Document& document, const Data& data, Snapshot* snapshot);

}  // namespace tracefire::doctor
