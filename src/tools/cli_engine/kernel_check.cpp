// SPDX-License-Identifier: Apache-2.0
#include "tools/cli_engine/kernel_check.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tools/cli/command.h"
#include "tools/inject/classify.h"
#include "tools/inject/run.h"

namespace tracefire::cli {
namespace {

namespace fs = std::filesystem;
using profiler::Profile;

constexpr const char* kProduct = "cublasLtMatmul";  ///< the library chooses the kernel

/// What CUPTI saw of one kernel name.
struct Seen {
  uint64_t count = 0, total = 0;
};

bool is_copy(const std::string& symbol) { return symbol == "memset" || symbol == "memcpy"; }

/// Mean time of a launch of `symbol` in microseconds, below 0 where it was not seen.
double mean_us(const std::map<std::string, Seen>& seen, const std::string& symbol) {
  const auto found = seen.find(symbol);
  if (found == seen.end() || found->second.count == 0) return -1;
  return static_cast<double>(found->second.total) / static_cast<double>(found->second.count) / 1e3;
}

void use_times(const std::map<std::string, Seen>& seen, std::vector<Profile::Row>* rows) {
  std::map<std::string, double> totals;
  for (Profile::Row& row : *rows) {
    double mean = 0;
    bool known = !row.symbols.empty();
    for (const std::string& symbol : row.symbols) {
      if (is_copy(symbol)) continue;
      const double one = mean_us(seen, symbol);
      known &= one >= 0;
      mean += one;
    }
    if (known && mean > 0) {
      row.source = "CUPTI";
      row.time = {row.runs, static_cast<double>(row.runs) * mean, mean, 0, 0};
    }
    totals[row.device] += row.time.total_us;
  }
  for (Profile::Row& row : *rows) {
    if (totals[row.device] > 0) row.share = row.time.total_us / totals[row.device];
  }
  std::stable_sort(rows->begin(), rows->end(),
                   [](const auto& a, const auto& b) { return a.time.total_us > b.time.total_us; });
}

}  // namespace

std::string KernelCheck::str() const {
  if (state == "not applicable" || state == "unavailable") {
    return "kernels were not compared with CUPTI (" + state + "): " + reason;
  }
  std::string text = concat_text(state == "confirmed" ? "confirmed" : "not all confirmed",
                                 " by CUPTI: ", confirmed, " of ", named, " kernels");
  for (size_t i = 0; i < missing.size(); ++i) text += (i == 0 ? "; not seen: " : ", ") + missing[i];
  return text;
}

KernelCheck check_kernels(const inject::Session& session,
                          const std::vector<inject::ProcessRecord>& records, Profile* profile) {
  KernelCheck check;
  std::set<std::string> named;
  for (const Profile::Row& row : profile->kernels) {
    if (row.device.find("GPU") == std::string::npos) continue;
    for (const std::string& symbol : row.symbols) {
      if (!is_copy(symbol)) named.insert(symbol);
    }
  }
  check.named = named.size();
  if (named.empty()) {
    check.state = "not applicable";
    check.reason = "nothing ran on a GPU";
    return check;
  }
  std::map<std::string, Seen> seen;
  bool traced = false;
  for (const inject::ProcessRecord& record : records) {
    if (record.pid != static_cast<uint32_t>(profile->pid)) continue;
    traced |= record.state == inject::TraceState::kTracing;
    if (!record.detail.empty()) check.reason = record.detail;
    for (const inject::NameRow& name : record.names) {
      const auto add = [&](const std::string& key) {
        seen[key].count += name.count;
        seen[key].total += name.total;
      };
      add(name.name);
      const std::string readable = inject::readable_kernel(name.name);
      if (inject::is_product(inject::classify_kernel(readable).work)) add(kProduct);
    }
  }
  if (!traced || seen.empty()) {
    check.state = "unavailable";
    if (check.reason.empty()) {
      check.reason =
          session.tracing == "on" ? "CUPTI left no record of the process" : session.tracing;
    }
    return check;
  }
  for (const std::string& symbol : named) {
    if (seen.count(symbol) != 0) {
      ++check.confirmed;
    } else {
      check.missing.push_back(symbol);
    }
  }
  check.state = check.missing.empty() ? "confirmed" : "differs";
  use_times(seen, &profile->operations);
  use_times(seen, &profile->kernels);
  profile->notes.push_back(
      "Times marked `CUPTI` are means of the kernels' launches as the driver reports them; kernels "
      "that several operations share have one mean.");
  return check;
}

std::vector<Profile> read_profiles(const std::string& folder) {
  std::vector<Profile> profiles;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing)) {
    const std::string path = entry.path() / "profile.json";
    std::ifstream file(path, std::ios::binary);
    if (!file) continue;
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    profiles.push_back(Profile::from_json(text));
  }
  const auto work = [](const Profile& p) {
    uint64_t runs = 0;
    for (const Profile::Row& row : p.operations) runs += row.runs;
    return runs;
  };
  std::sort(profiles.begin(), profiles.end(), [&](const Profile& a, const Profile& b) {
    return std::make_pair(work(b), a.pid) < std::make_pair(work(a), b.pid);
  });
  return profiles;
}

ProfiledRun run_profiled(const inject::RunOptions& options) {
  const std::string processes = options.folder + "/processes";
  ProfiledRun run;
  if (options.folder.empty()) {
    run.session = inject::run_and_record(options, &run.lost);
    run.lost = options.no_folder;
    return run;
  }
  // The program below inherits it; a relative path would move with its working folder.
  setenv("TRACEFIRE_PROFILE", fs::absolute(processes).c_str(), 1);
  run.session = inject::run_and_record(options, &run.lost);
  unsetenv("TRACEFIRE_PROFILE");
  run.profiles = read_profiles(processes);
  inject::Damage damage;
  const Result<std::vector<inject::ProcessRecord>> records =
      inject::read_records(options.folder, &damage);
  for (Profile& profile : run.profiles) {
    run.checks.push_back(check_kernels(
        run.session, records.ok() ? *records : std::vector<inject::ProcessRecord>(), &profile));
  }
  return run;
}

}  // namespace tracefire::cli
