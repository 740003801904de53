// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "health_table.h"  // generated from schema/health.json
#include "tools/inject/classify.h"
#include "tools/inject/gaps.h"
#include "tools/inject/ops.h"
#include "tools/inject/records.h"
#include "tools/inject/session.h"

namespace tracefire::inject {

/// Where a program computed.
enum class Place : uint8_t {
  kOnGpu,
  kPartlyOnGpu,
  kOnCpu,
  kUnknown,  ///< nothing was traced, so nothing is claimed
};
const char* place_name(Place place);  ///< "on-gpu", "partly-on-gpu", "on-cpu", "unknown"

/// On what the verdict stands.
enum class Evidence : uint8_t {
  kTraced,    ///< CUPTI recorded every kernel
  kRecorded,  ///< Tracefire's executor recorded every operation, CUPTI nothing
  kSampled,   ///< NVML was asked from time to time
  kNone,
};

// Texts in what follows passed printable() and redacted(); shares are 0 to 1, times ns.

struct KernelFigure {
  std::string name;
  std::string short_name;
  KernelKind kind;
  uint64_t count = 0, total = 0, least = 0, most = 0;
  double share = 0;   ///< of all kernel time
  double blocks = 0;  ///< mean number of blocks
};

struct ClassFigure {
  KernelClass work = KernelClass::kOther;
  uint64_t count = 0, total = 0;
  double share = 0;
  uint64_t on_tensor_cores = 0, not_on_tensor_cores = 0;  ///< ns; the rest is not known
};

struct CopyFigure {
  std::string way;  ///< "host to device, pageable"
  int kind = 0;     ///< CUPTI's copy kind
  bool pageable = false;
  uint64_t count = 0, bytes = 0, total = 0;
  double gigabytes_per_second = 0;
};

struct CauseFigure {
  Cause cause = Cause::kUnknown;
  double share = 0;   ///< of the steady part
  uint64_t gaps = 0;  ///< in the windows
  double mean_gap_us = 0;
};

/// One GPU as one process used it.
struct GpuUse {
  uint32_t device = 0;
  std::string name, uuid;
  uint64_t busy = 0, compute = 0, communication = 0, copies = 0;  ///< unions, whole run
  uint64_t steady_first = 0, steady_last = 0;                     ///< CUPTI's clock
  double busy_share = 0;                                          ///< kernels, of the steady part
  double compute_share = 0;                                       ///< kernels but communication
  double copy_share = 0;
  double cores_busy = 0;     ///< CPU time of the process over the steady part
  double cores_own = 0;      ///< of it, what was spent outside CUDA's launches, copies and waits
  uint64_t memory_peak = 0;  ///< bytes that the process allocated
  GapFigures gaps;
  std::vector<CauseFigure> causes;  ///< largest first
};

struct ProcessFigure {
  const ProcessRecord* record = nullptr;
  std::string title;  ///< "rank 1 of 2, pid 123 on host"
  std::string command;
  Place place = Place::kUnknown;
  uint64_t kernels = 0, kernel_ns = 0, compute_ns = 0, cpu_ns = 0;
  std::vector<GpuUse> gpus;
};

struct Advice {
  std::string finding;  ///< with its figures
  std::vector<std::string> actions;
};

/// The verdict and all figures behind it.
struct Report {
  const Session* session = nullptr;
  Place place = Place::kUnknown;
  Evidence evidence = Evidence::kNone;
  std::string reason;  ///< one sentence with the figures that decided
  bool has_steady = false;
  double busy_share = 0;   ///< mean over the GPUs in use, of their steady part
  double whole_share = 0;  ///< the same of the whole run
  health::Grade grade = health::Grade::kIdle;
  std::vector<CauseFigure> causes;  ///< of all GPUs, largest first
  std::vector<ProcessFigure> processes;
  std::vector<KernelFigure> kernels;  ///< by time
  std::vector<ClassFigure> classes;   ///< by time
  std::vector<CopyFigure> copies;
  uint64_t kernel_ns = 0, kernel_count = 0, launches = 0;
  uint64_t memory_peak = 0;             ///< largest of one GPU: by CUPTI
  int64_t nvml_memory_peak = -1;        ///< by NVML, all processes of the program
  OpReport ops;                         ///< of Tracefire's programs
  std::vector<std::string> throttling;  ///< what held clocks down, with its part of the time
  std::vector<Advice> advice;
  std::vector<std::string> notes;  ///< what is missing or was cut, what cannot be known
  /// Why the evidence is incomplete: records that were dropped, damaged or lost, processes that
  /// left none. The verdict is then at most what was seen for certain.
  std::vector<std::string> incomplete;
  bool complete() const { return incomplete.empty(); }
};

Report analyse(const Session& session, const std::vector<ProcessRecord>& records,
               const Damage& damage);

/// Looks for what the records do not show, and takes from the verdict what they cannot bear.
void weigh_evidence(Report& report, const std::vector<ProcessRecord>& records,
                    const Damage& damage);

/// Adds what the machine did to the program: memory swapping, other processes on its GPUs.
void advise_machine(const Report& report, std::vector<Advice>& list);

/// Adds how processes that could leave no records can be made to, where that decides the verdict.
void advise_unseen(const Report& report, std::vector<Advice>& list);

/// Why the absence of records proves nothing; empty where every process would have left some had it
/// used a GPU.
std::string unseen_work(const Session& session);

/// What to do, from the figures of `report`.
std::vector<Advice> advise(const Report& report);

}  // namespace tracefire::inject
