// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/inject/records.h"
#include "tools/inject/run.h"
#include "tools/inject/session.h"
#include "tracefire/profiler.h"

namespace tracefire::cli {

/// Whether the driver saw the kernels that the executor's records name.
struct KernelCheck {
  std::string state;  ///< "confirmed" "differs" "not applicable" "unavailable"
  size_t named = 0;   ///< device kernels that the records name
  size_t confirmed = 0;
  std::vector<std::string> missing;  ///< named, but not seen
  std::string reason;                ///< why it is not applicable or unavailable
  /// "confirmed by CUPTI: 12 of 12 kernels", or why not.
  std::string str() const;
};

/// Compares `profile` with what CUPTI recorded of the same process; rows whose kernels it saw get
/// its times ("CUPTI"). Copies and fills are no kernels and are left out.
KernelCheck check_kernels(const inject::Session& session,
                          const std::vector<inject::ProcessRecord>& records,
                          profiler::Profile* profile);

/// The profiles that the processes of a run left in `folder`, most work first.
std::vector<profiler::Profile> read_profiles(const std::string& folder);

/// A run of a program with profiles and, where there is a GPU, CUPTI's records.
struct ProfiledRun {
  inject::Session session;
  std::vector<profiler::Profile> profiles;
  std::vector<KernelCheck> checks;  ///< one a profile
  std::string lost;                 ///< why the records are not in the folder; empty where they are
};
/// Runs options.command; everything it leaves lies in options.folder, made by
/// inject::make_folder(). Without a folder the program runs and leaves nothing.
ProfiledRun run_profiled(const inject::RunOptions& options);

}  // namespace tracefire::cli
