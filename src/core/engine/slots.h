// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "core/engine/engine.h"

namespace tracefire {

/// Slots a run uses, taken from preparation to its end.
///
/// Slots that the run writes hold a pending value meanwhile: whoever reads one waits, and a second
/// run that writes it waits too. They are taken in the order of their ids, so that two runs cannot
/// wait for each other. A slot to be written is given memory of which it is the only owner: values,
/// NumPy views and running programs that still read the old value keep the old memory.
class SlotLease {
 public:
  /// `written[i]`: whether the run assigns slots[i].
  static Result<SlotLease> take(const std::vector<trace::SlotPtr>& slots,
                                const std::vector<bool>& written);
  SlotLease(SlotLease&&) = default;
  SlotLease& operator=(SlotLease&&) = delete;
  /// Slots not published before get their old values back.
  ~SlotLease();

  const Storage& storage(size_t i) const { return entries_[i].storage; }
  Run::Parent parent(size_t i) const { return entries_[i].parent; }
  /// The run wrote slot i as result `result`.
  void publish(size_t i, std::shared_ptr<Run> run, int32_t result);
  /// The run failed after it may have written slot i.
  void lose(size_t i, const Status& cause);

 private:
  struct Entry {
    trace::SlotPtr slot;
    bool written = false;
    Storage storage;
    Run::Parent parent;
    trace::CellPtr placeholder;  ///< what readers wait for; null once published
    trace::CellPtr old;
  };
  SlotLease() = default;
  static Status prepare(Entry* entry);
  std::vector<Entry> entries_;
};

}  // namespace tracefire
