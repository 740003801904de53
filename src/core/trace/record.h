// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/event.h"
#include "core/trace/cell.h"
#include "core/trace/scope.h"

namespace tracefire::trace {

/// What makes pending values ready. Implemented by the engine; declared here so that the trace
/// does not depend on compiler or runtime.
class Firer {
 public:
  virtual ~Firer() = default;
  /// Makes `cells` ready or failed, together with the effects pending on this thread.
  virtual void fire(std::span<const CellPtr> cells, Trigger trigger) = 0;
  virtual Device default_device() = 0;
  /// kUnknownDevice, with those that there are, where the process has no such device.
  virtual Status check_device(Device device) = 0;
  /// Whether an op on the CPU takes so long that it must be done when its call returns: clocks that
  /// people set around it then tell the truth (setting cpu_wait_above).
  virtual bool finishes_before_return(Device device, const Node& node,
                                      const std::vector<ValueType>& inputs) = 0;
};
void set_firer(Firer* firer);
Firer& firer();

/// Records an operation on this thread: imports the inputs into the current scope, infers types,
/// fixes the device, and in eager mode fires when a limit is reached. Ordered ops get their token
/// here: `inputs` are without it, and so are the cells returned.
Result<std::vector<CellPtr>> record(OpId op, std::vector<CellPtr> inputs, Attrs attrs,
                                    std::vector<GraphPtr> regions = {});
/// The same with everything of `node` but its inputs given (a copy of a node of another graph);
/// tokens are among the inputs and outputs.
Result<std::vector<CellPtr>> record_node(Node node, std::vector<CellPtr> inputs);

/// The same value on `device`: the cell itself where it is there already, or holds strings, which
/// are on the host always; else the result of a copy, recorded.
Result<CellPtr> moved_to(const CellPtr& cell, Device device);

/// End of the effect chain of `effect` on this thread (in the current scope).
CellPtr effect_token(const std::string& effect);
void set_effect_token(const std::string& effect, CellPtr token);

/// Value of a variable at this point of the program, and its change.
CellPtr read_slot(const SlotPtr& slot);
Status assign_slot(const SlotPtr& slot, CellPtr value);

/// Pending work of one thread in eager mode.
struct Eager {
  std::vector<std::weak_ptr<TraceNode>> pending;  ///< in order; expired ones are nobody's wish
  std::vector<TraceNodePtr> effects;              ///< ordered ops not yet fired
  std::map<std::string, CellPtr> tokens;
  int64_t pinned_bytes = 0;
  int inside = 0;  ///< > 0: the engine is at work on this thread; nothing fires by itself
  std::deque<Status> failures;  ///< of effects, carried by no value: raised once, the oldest first

  ~Eager();  ///< says what nobody was told
};
Eager& eager();
/// The oldest failure that no value carries, which is forgotten then; OK where there is none.
Status take_failure();

/// Thread-local device and name scopes.
struct Context {
  Device device;
  std::vector<std::string> names;
};
Context& context();

/// The user's source line for a node recorded now.
Location current_location();

/// Whoever wants to see every node recorded on one thread (tapes).
class NodeListener {
 public:
  virtual ~NodeListener() = default;
  virtual void recorded(const TraceNodePtr& node, const std::vector<CellPtr>& outputs) = 0;
  /// Of the thread that calls it, from now on.
  static void start(const std::shared_ptr<NodeListener>& listener);
  /// On any thread.
  void stop() { thread_ = std::thread::id(); }
  bool is_recording() const { return thread_.load() != std::thread::id(); }
  bool records_here() const { return thread_.load() == std::this_thread::get_id(); }

 private:
  std::atomic<std::thread::id> thread_;  ///< none: it has stopped
};
/// Those of this thread, and some that have stopped or are gone.
std::vector<std::weak_ptr<NodeListener>>& listeners();

}  // namespace tracefire::trace
