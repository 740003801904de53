// SPDX-License-Identifier: Apache-2.0
#include "core/base/event.h"
#include "core/engine/function_state.h"
#include "core/runtime/transfer.h"

namespace tracefire {

struct Savepoint::Impl {
  struct Entry {
    trace::SlotPtr slot;
    Storage storage;     ///< empty until keep()
    Run::Parent origin;  ///< the run that can still turn out to have failed
  };
  std::vector<Entry> entries;
  bool kept = false;

  static Status keep(Entry* entry);
  static Status check(const Entry& entry);
};

namespace {

trace::CellPtr current_of(trace::Slot& slot) {
  std::lock_guard<std::mutex> lock(slot.mutex);
  return slot.current;
}

}  // namespace

/// The cell is held until the copy is enqueued: a run that writes the variable meanwhile leaves its
/// memory alone.
Status Savepoint::Impl::keep(Entry* entry) {
  trace::Slot& slot = *entry->slot;
  const trace::CellPtr current = current_of(slot);
  TF_ASSIGN(auto payload, Engine::instance().ready(current, Trigger::kCall));
  if (!entry->storage) {
    TF_ASSIGN(entry->storage, allocate_storage(slot.device, slot.type, slot.name.c_str()));
  }
  entry->origin = parent_of(payload);
  return copy_value(slot.type, payload->storage, entry->storage);
}

Status Savepoint::Impl::check(const Entry& entry) {
  const trace::CellPtr current = current_of(*entry.slot);
  TF_ASSIGN(auto payload, Engine::instance().ready(current, Trigger::kCall));
  const Run::Parent origin = parent_of(payload);
  return origin.run ? origin.run->check(origin.result) : Status{};
}

Savepoint::Savepoint(std::vector<Variable> variables) : impl_(std::make_unique<Impl>()) {
  for (const Variable& variable : variables) {
    if (!variable.slot()) {
      error(ErrorCode::kBadUsage, "a Savepoint was given an undefined variable").throw_if_error();
    }
    impl_->entries.push_back({variable.slot(), {}, {}});
  }
}
Savepoint::~Savepoint() = default;
Savepoint::Savepoint(Savepoint&&) noexcept = default;
Savepoint& Savepoint::operator=(Savepoint&&) noexcept = default;

void Savepoint::keep() {
  impl_->kept = false;
  uint64_t bytes = 0;
  for (Impl::Entry& entry : impl_->entries) {
    Impl::keep(&entry).throw_if_error();
    bytes += storage_bytes(entry.slot->type);
  }
  impl_->kept = true;
  if (bytes > 0) {
    Events::instance().publish(
        CopyEvent{CopyKind::kDeviceToDevice, bytes, "variables kept in case a step fails"});
  }
}

void Savepoint::check() const {
  for (const Impl::Entry& entry : impl_->entries) Impl::check(entry).throw_if_error();
}

void Savepoint::restore() {
  if (!impl_->kept) {
    error(ErrorCode::kBadUsage,
          "restore() of a Savepoint that keeps nothing; call keep() before the runs that may fail")
        .throw_if_error();
  }
  impl_->kept = false;
  for (Impl::Entry& entry : impl_->entries) {
    auto payload = std::make_shared<DevicePayload>(
        std::move(entry.storage), std::move(entry.origin.run), entry.origin.result);
    entry.storage = {};
    entry.origin = {};
    trace::Slot& slot = *entry.slot;
    trace::CellPtr value = trace::make_ready_cell(slot.type, slot.device, std::move(payload));
    std::lock_guard<std::mutex> lock(slot.mutex);
    slot.current.swap(value);  // what it replaces goes after the lock
  }
}

}  // namespace tracefire
