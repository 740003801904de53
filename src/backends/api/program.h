// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/api/device_backend.h"
#include "tracefire/placement.h"

namespace tracefire {

enum class StepKind : uint8_t {
  kKernel,    ///< kernel->bind()->run()
  kAlias,     ///< same bytes under another shape (reshape); no work
  kCopy,      ///< between devices
  kIf,        ///< reads the predicate on the host, runs regions[0] or regions[1]
  kWhile,     ///< regions[0] condition, regions[1] body, on the host
  kCall,      ///< runs regions[0]
  kHostCall,  ///< host_call, print, assert: host copies, no lock held
};

/// One step of a program. Values are numbers into Program::values.
struct Step {
  StepKind kind = StepKind::kKernel;
  int32_t node = -1;  ///< in Program::graph
  Device device;
  const Kernel* kernel = nullptr;
  std::shared_ptr<const LoopProgram> loop;
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<std::shared_ptr<const class Program>> regions;
  Placement placement = Placement::kOnDevice;
  std::string reason;                 ///< one line: why this kernel, or why it fell back
  std::vector<std::string> refusals;  ///< of better candidates, in list order
};

struct ProgramValue {
  ValueType type;
  Device device;
  int32_t param = -1;       ///< parameter number, or -1
  int32_t alias_of = -1;    ///< value whose bytes these are
  int32_t in_slot = -1;     ///< parameter number of the slot whose buffer this value is written to
  int32_t first_step = -1;  ///< step that defines it
  int32_t last_step = -1;   ///< last step that reads it (aliases included); results: steps.size()
};

/// Where values live: parameters and slots in the caller's storage; results in storage of their
/// own, or written to in_slot's; results of kIf, kWhile, kCall and kHostCall steps, and values
/// whose size depends on data not yet read, in storage allocated when their step runs
/// (data-dependent results get the size of the step's first input); all others in the arena of the
/// instance. Tokens have no storage.
///
/// A compiled graph: linear steps over numbered values. Immutable, shared by its instances.
class Program {
 public:
  uint64_t id = 0;
  std::string name;
  GraphPtr graph;  ///< after all passes
  std::vector<ProgramValue> values;
  std::vector<Step> steps;
  std::vector<int32_t> params;        ///< value of each parameter
  std::vector<int32_t> results;       ///< value of each result
  std::vector<int32_t> result_slots;  ///< parameter number of the slot, or -1
  /// Steps after which the size of a fresh symbol must be read: {step, symbol, value}.
  struct SizeRead {
    int32_t step;
    int32_t symbol;
    int32_t value;
  };
  std::vector<SizeRead> size_reads;
  /// For each result, the steps with data checks it depends on.
  std::vector<std::vector<int32_t>> result_checks;
  bool capturable = false;
  std::string why_not_capturable;
  Precision precision = Precision::kTf32;
  bool deterministic = false;

  /// Steps, values and kernels as text: golden files, `explain`, replay checks.
  std::string str() const;
};
using ProgramPtr = std::shared_ptr<const Program>;

}  // namespace tracefire
