// SPDX-License-Identifier: Apache-2.0
// Joins the executor's records with the driver's: by the names of kernels. A kernel that a library
// chose has no name beforehand; those are joined by what they are.
#include "tools/inject/ops.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/inject/classify.h"
#include "tools/inject/escape.h"

namespace tracefire::inject {
namespace {

/// Stand for the kernels that cuBLASLt chooses, and for copies.
constexpr std::string_view kLibraryProduct = "cublasLtMatmul";

struct Claim {
  OpFigure* figure = nullptr;
  double weight = 0;
};

struct Kernel {
  uint64_t count = 0;
  double ns = 0;
  bool claimed = false;
};

double weight_of(const OpRow& row) {
  const double work = row.flops > 0 ? row.flops : row.bytes;
  return work > 0 ? work : static_cast<double>(row.runs);
}

class Join {
 public:
  explicit Join(OpReport* report) : report_(*report) {}

  void process(const ProcessRecord& record) {
    const OpRecords& ops = *record.ops;
    const bool traced = record.state == TraceState::kTracing;
    std::map<std::string, std::vector<Claim>> claims;
    std::map<std::string, uint64_t> launches;
    for (const OpRow& row : ops.rows) {
      OpFigure& figure = find(row);
      figure.runs += row.runs;
      figure.flops += row.flops;
      figure.bytes += row.bytes;
      if (!traced || !row.on_gpu()) continue;
      for (size_t i = 0; i < row.symbols.size(); ++i) {
        const uint64_t count = i < row.launches.size() ? row.launches[i] : row.runs;
        const double part =
            row.runs > 0 ? static_cast<double>(count) / static_cast<double>(row.runs) : 1;
        claims[row.symbols[i]].push_back({&figure, weight_of(row) * part});
        launches[row.symbols[i]] += i < row.launches.size() ? count : 0;
        report_.counted &= i < row.launches.size();
      }
    }
    for (const ProgramRow& p : ops.programs) {
      ProgramFigure& to = programs_[p.name];
      to.name = p.name;
      to.runs += p.runs;
      to.graph_launches += p.graph_launches;
      to.host_ns += p.host_ns;
      to.longest_ns = std::max(to.longest_ns, p.longest_ns);
    }
    report_.gpu_flops += ops.gpu_flops;
    report_.cpu_flops += ops.cpu_flops;
    report_.cpu_by_choice_flops += ops.cpu_by_choice_flops;
    if (!traced) return;
    std::map<std::string, Kernel> kernels;
    double all = 0;
    for (const NameRow& n : record.names) {
      Kernel& k = kernels[n.name];
      k.count += n.count;
      k.ns += static_cast<double>(n.total);
      all += static_cast<double>(n.total);
    }
    for (const auto& [symbol, rows] : claims) {
      const auto found = kernels.find(symbol);
      if (found == kernels.end() || found->second.count == 0) {
        if (symbol != kLibraryProduct && symbol != "memset" && symbol != "memcpy") {
          compare(symbol, 0, launches[symbol]);
        }
        continue;
      }
      found->second.claimed = true;
      give(rows, found->second.ns);
      compare(symbol, found->second.count, launches[symbol]);
    }
    if (const auto rows = claims.find(std::string(kLibraryProduct)); rows != claims.end()) {
      double ns = 0;
      uint64_t count = 0;
      for (auto& [name, kernel] : kernels) {
        if (kernel.claimed || classify_kernel(readable_kernel(name)).work != KernelClass::kMatmul) {
          continue;
        }
        kernel.claimed = true;
        ns += kernel.ns;
        count += kernel.count;
      }
      compare("the library's products", count, launches[rows->first]);
      if (count > 0) give(rows->second, ns);
    }
    for (const auto& [name, kernel] : kernels) report_.joined_ns += kernel.claimed ? kernel.ns : 0;
    if (all == 0 && ops.gpu_flops > 0) {
      report_.notes.push_back(
          "the executor's records name work on a GPU of which the driver recorded no kernel: the "
          "records disagree");
    }
  }

  void finish() {
    double work = 0;
    for (const auto& [key, figure] : figures_) work += figure.flops;
    for (auto& [key, figure] : figures_) {
      figure.work_share = work > 0 ? figure.flops / work : 0;
      report_.ops.push_back(std::move(figure));
    }
    std::stable_sort(report_.ops.begin(), report_.ops.end(),
                     [](const OpFigure& a, const OpFigure& b) {
                       return std::make_tuple(a.kernel_ns, a.flops, a.bytes) >
                              std::make_tuple(b.kernel_ns, b.flops, b.bytes);
                     });
    for (auto& [name, program] : programs_) report_.programs.push_back(std::move(program));
    std::stable_sort(
        report_.programs.begin(), report_.programs.end(),
        [](const ProgramFigure& a, const ProgramFigure& b) { return a.host_ns > b.host_ns; });
  }

 private:
  void compare(const std::string& kernel, uint64_t recorded, uint64_t launched) {
    constexpr size_t kMostText = 400;
    ++report_.kernels_compared;
    if (recorded >= std::max<uint64_t>(launched, 1)) {
      ++report_.kernels_agreeing;
    } else if (report_.fewer.size() < kMostText) {
      report_.fewer += (report_.fewer.empty() ? "" : ", ") + printable(kernel, 80) + " (" +
                       std::to_string(recorded) + " of " + std::to_string(launched) + ")";
    } else if (report_.fewer.back() != '.') {
      report_.fewer += " ...";
    }
  }

  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string,
                         std::string, std::string>;

  OpFigure& find(const OpRow& row) {
    OpFigure& f = figures_[{row.op, row.layer, row.location, row.device, row.kernel, row.placement,
                            row.reason}];
    f.op = row.op;
    f.layer = row.layer;
    f.location = row.location;
    f.device = row.device;
    f.kernel = row.kernel;
    f.library = row.library;
    f.placement = row.placement;
    f.reason = row.reason;
    return f;
  }

  /// Divides time among the rows that launch a kernel, by their work.
  static void give(const std::vector<Claim>& rows, double ns) {
    double all = 0;
    for (const Claim& c : rows) all += c.weight;
    for (const Claim& c : rows) {
      OpFigure& f = *c.figure;
      f.kernel_ns = std::max(f.kernel_ns, 0.0) + (all > 0 ? ns * c.weight / all : 0);
      f.estimated |= rows.size() > 1;
    }
  }

  OpReport& report_;
  std::map<Key, OpFigure> figures_;
  std::map<std::string, ProgramFigure> programs_;
};

}  // namespace

OpReport join_ops(const std::vector<ProcessRecord>& records) {
  OpReport report;
  Join join(&report);
  for (const ProcessRecord& r : records) {
    if (!r.ops) continue;
    report.found = true;
    join.process(r);
    if (r.ops->crowded) {
      report.notes.push_back(
          "more than 4,096 operations, layers and lines: later ones are added up as (various)");
    }
    if (!r.ops->clean_end) {
      report.notes.push_back(
          "the executor's last records are missing: up to a second of "
          "operations is not counted");
    }
  }
  join.finish();
  return report;
}

}  // namespace tracefire::inject
