// SPDX-License-Identifier: Apache-2.0
#include "core/engine/slots.h"

#include <algorithm>
#include <numeric>

#include "core/base/event.h"
#include "core/runtime/transfer.h"

namespace tracefire {
namespace {

std::shared_ptr<DevicePayload> home_of(const trace::Slot& slot) {
  return std::static_pointer_cast<DevicePayload>(slot.home);
}

/// True where nobody but the slot can see the payload: its cell holds it, perhaps the slot's home
/// too, and no view, tensor or run holds cell, payload or buffer.
bool sole_owner(const trace::CellPtr& cell, const std::shared_ptr<DevicePayload>& payload,
                long cell_owners, long payload_owners) {
  return cell.use_count() <= cell_owners && payload.use_count() <= payload_owners &&
         payload->storage.buffer.use_count() == 1;
}

}  // namespace

/// Called with the slot's value ready. Gives the slot memory that it owns alone where the run
/// writes it, and a stable address in any case.
Status SlotLease::prepare(Entry* entry) {
  trace::Slot& slot = *entry->slot;
  const ValueType& type = slot.type;
  std::shared_ptr<DevicePayload> now = payload_of(*slot.current);
  std::shared_ptr<DevicePayload> home = home_of(slot);
  const bool at_home = home != nullptr && home == now;
  // Owners seen from here: cell = slot; payload = cell + `now` (+ home + `home`).
  const bool alone = sole_owner(slot.current, now, 1, at_home ? 4 : 2);
  auto adopt = [&](std::shared_ptr<DevicePayload> payload) {
    slot.home = payload;
    slot.current = trace::make_ready_cell(type, slot.device, payload);
    entry->storage = payload->storage;
    return Status{};
  };
  if (at_home && (alone || !entry->written)) {
    entry->storage = now->storage;
    return {};
  }
  const bool fits = now->storage.offset == 0 && now->storage.buffer->device() == slot.device;
  if (!at_home && home != nullptr && home.use_count() == 2 &&
      home->storage.buffer.use_count() == 1) {
    // The address that programs have bound is free: bring the value there.
    TF_RETURN_IF_ERROR(copy_value(type, now->storage, home->storage));
    return adopt(std::make_shared<DevicePayload>(home->storage, now->run, now->result));
  }
  if (!at_home && fits && (alone || !entry->written)) return adopt(now);
  TF_ASSIGN(Storage fresh, allocate_storage(slot.device, type, slot.name.c_str()));
  TF_RETURN_IF_ERROR(copy_value(type, now->storage, fresh));
  Events::instance().publish(CopyEvent{CopyKind::kSlotRelocation, storage_bytes(type),
                                       "the old value of a variable is still in use"});
  return adopt(std::make_shared<DevicePayload>(std::move(fresh), now->run, now->result));
}

Result<SlotLease> SlotLease::take(const std::vector<trace::SlotPtr>& slots,
                                  const std::vector<bool>& written) {
  Engine& engine = Engine::instance();
  SlotLease lease;
  lease.entries_.resize(slots.size());
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return slots[a]->id < slots[b]->id; });
  for (size_t i : order) {
    Entry& entry = lease.entries_[i];
    entry.slot = slots[i];
    entry.written = written[i];
    while (true) {
      trace::CellPtr current;
      {
        std::lock_guard<std::mutex> lock(entry.slot->mutex);
        current = entry.slot->current;
      }
      TF_ASSIGN(std::shared_ptr<DevicePayload> payload, engine.ready(current, Trigger::kCall));
      entry.parent = parent_of(payload);
      payload.reset();
      std::lock_guard<std::mutex> lock(entry.slot->mutex);
      if (entry.slot->current != current) continue;  // assigned meanwhile
      current.reset();
      TF_RETURN_IF_ERROR(prepare(&entry));
      if (entry.written) {
        entry.old = entry.slot->current;
        entry.placeholder = trace::make_cell(entry.slot->type, entry.slot->device, 0);
        entry.slot->current = entry.placeholder;
      }
      break;
    }
  }
  return lease;
}

void SlotLease::publish(size_t i, std::shared_ptr<Run> run, int32_t result) {
  Entry& entry = entries_[i];
  auto payload = std::make_shared<DevicePayload>(entry.storage, std::move(run), result);
  {
    std::lock_guard<std::mutex> lock(entry.slot->mutex);
    entry.slot->home = payload;
  }
  Engine::instance().publish(entry.placeholder, std::move(payload));
  entry.placeholder.reset();
  entry.old.reset();
  entry.storage = {};
}

void SlotLease::lose(size_t i, const Status& cause) {
  Entry& entry = entries_[i];
  if (!entry.placeholder) return;
  Engine::instance().fail(
      entry.placeholder,
      error(ErrorCode::kSlotLost, "the value of variable '", entry.slot->name,
            "' was lost: a run failed while it was writing it; assign it again. Cause: ",
            cause.str()));
  entry.placeholder.reset();
  entry.old.reset();
}

SlotLease::~SlotLease() {
  for (Entry& entry : entries_) {
    if (!entry.placeholder) continue;
    auto payload = payload_of(*entry.old);
    entry.old.reset();
    entry.storage = {};
    Engine::instance().publish(entry.placeholder, std::move(payload));
  }
}

}  // namespace tracefire
