// SPDX-License-Identifier: Apache-2.0
// What the records do not show, and how far the verdict may go without it.
#include <algorithm>
#include <cstdio>

#include "tools/inject/analyse.h"
#include "tools/inject/escape.h"

namespace tracefire::inject {
namespace {

constexpr double kSnapshotNs = 1e9;  // the totals of a process are written about this often

/// Work that may have been done and is not seen.
struct Unseen {
  bool gpu = false, cpu = false;
};

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2g %%", 100 * share);
  return text;
}

/// The part of its life of which a process that was killed or left by _exit may lack records.
double unseen_tail(const ProcessRecord& r, const Session& session) {
  if (r.clean_end || r.state != TraceState::kTracing) return 0;
  double lost = kSnapshotNs;
  const auto recorded = static_cast<double>(r.now.real) - static_cast<double>(r.first.real);
  for (const ProcessSeen& p : session.processes) {
    if (p.pid != static_cast<pid_t>(r.pid) || r.host != session.host) continue;
    const double last = static_cast<double>(session.started_ns) + static_cast<double>(p.last_ns);
    lost = std::max(lost, last - static_cast<double>(r.now.real));
  }
  return lost / (std::max(recorded, 0.0) + lost);
}

/// Processes of the program that NVML named and that left no record.
void miss_processes(const Report& report, const std::vector<ProcessRecord>& records,
                    std::vector<std::string>& reasons) {
  const Session& s = *report.session;
  if (s.elsewhere || s.tracing != "on") return;
  for (const ProcessSeen& p : s.processes) {
    if (!p.on_gpu) continue;
    const bool known = std::any_of(records.begin(), records.end(), [&](const ProcessRecord& r) {
      return r.pid == static_cast<uint32_t>(p.pid);
    });
    if (!known) {
      reasons.push_back("pid " + std::to_string(p.pid) + " (" + printable(p.name, 64) +
                        ") was on a GPU by NVML and left no record");
    }
  }
}

/// A verdict that what is unseen could make another, as far as what was seen bears it.
Place certain(Place place, const Unseen& unseen) {
  if (place == Place::kOnCpu && unseen.gpu) return Place::kUnknown;
  if (place == Place::kOnGpu && unseen.cpu) return Place::kPartlyOnGpu;
  return place;
}

}  // namespace

void weigh_evidence(Report& report, const std::vector<ProcessRecord>& records,
                    const Damage& damage) {
  std::vector<std::string>& reasons = report.incomplete;
  reasons = damage.traces;
  reasons.insert(reasons.end(), damage.operations.begin(), damage.operations.end());
  Unseen all{!damage.traces.empty(), !damage.operations.empty()};
  for (ProcessFigure& p : report.processes) {
    const ProcessRecord& r = *p.record;
    const std::string who = p.title + ": ";
    Unseen of_process;
    if (r.dropped > 0) {
      const auto seen = static_cast<double>(r.kernels + r.copies + r.sets + r.calls);
      const auto lost = static_cast<double>(r.dropped);
      reasons.push_back(who + std::to_string(r.dropped) + " records were dropped by CUPTI (" +
                        percent(lost / (seen + lost)) + ")");
      of_process.gpu = true;
    }
    const double tail = unseen_tail(r, *report.session);
    if (tail >= table::kTailShare) {
      reasons.push_back(who + "it ended without its last records (killed, or left by _exit): " +
                        "up to " + percent(tail) + " of its time may be missing");
      of_process.gpu = true;
    } else if (tail > 0) {
      report.notes.push_back(who +
                             "it ended without its last records (killed, or left by _exit): "
                             "up to a second of work may be missing");
    }
    if (!r.damage.empty()) reasons.push_back(who + r.damage);
    if (report.evidence == Evidence::kTraced && !r.ops && r.state != TraceState::kTracing &&
        r.state != TraceState::kNoCuda) {
      reasons.push_back(who + "CUPTI recorded nothing of it");
      of_process.gpu = true;
    }
    p.place = certain(p.place, of_process);
    all.gpu |= of_process.gpu;
  }
  if (report.evidence != Evidence::kSampled) {
    const size_t before = reasons.size();
    miss_processes(report, records, reasons);
    all.gpu |= reasons.size() > before;
  }
  if (report.session->ending.ran_on) {
    const std::string text =
        "processes that the program left behind ran on when it had ended: what they did then is "
        "not in the record";
    all.gpu = true;
    (report.place == Place::kOnGpu ? report.notes : reasons).push_back(text);
  }
  const Place seen = report.place;
  // What could leave no records matters where no work on a GPU was seen elsewhere.
  const std::string work =
      seen == Place::kOnCpu && report.session->tracing == "on" ? unseen_work(*report.session) : "";
  if (!work.empty()) reasons.push_back(work);
  all.gpu |= !work.empty();
  report.place = certain(report.place, all);
  if (report.place == Place::kUnknown && seen == Place::kOnCpu) {
    report.reason = "no work on a GPU was seen, but the evidence is incomplete";
    if (!work.empty()) report.reason = "no work on a GPU was seen, but " + work;
  }
}

}  // namespace tracefire::inject
