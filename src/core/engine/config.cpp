// SPDX-License-Identifier: Apache-2.0
#include "tracefire/config.h"

#include "backends/api/libraries.h"
#include "core/base/settings.h"
#include "core/engine/engine.h"
#include "core/engine/splice.h"
#include "core/ops/op_table.h"
#include "core/runtime/transfer.h"

namespace tracefire {

std::vector<DeviceDescription> list_devices() {
  settings_problem().throw_if_error();
  std::vector<DeviceDescription> out;
  for (DeviceBackend* device : Backends::instance().devices()) {
    const DeviceInfo& info = device->info();
    out.push_back({info.device, info.name, info.architecture, info.memory_bytes, info.driver});
  }
  return out;
}

std::string why_no_gpu() { return Backends::instance().why_no_gpu(); }
Device default_device() { return Engine::instance().default_device(); }

std::string library_report() { return Backends::instance().library_report(); }

std::vector<LibraryDescription> list_libraries() {
  std::vector<LibraryDescription> out;
  for (UsedLibrary& library : used_libraries()) {
    out.push_back({std::move(library.name), std::move(library.version), std::move(library.path),
                   std::move(library.origin)});
  }
  return out;
}

void add_library_root(const std::string& directory) {
  Backends::instance().add_library_root(directory);
}

void set_cpu_devices(int count) { Backends::instance().set_cpu_devices(count).throw_if_error(); }

void set_soft_device_placement(bool soft) {
  set_setting("device_policy", soft ? "soft" : "strict").throw_if_error();
}

void set_log_device_placement(bool log) {
  set_setting("log_device_placement", log ? "true" : "false").throw_if_error();
}

void set_tensor_float_32(bool allowed) {
  set_setting("matmul_precision", allowed ? "tf32" : "highest").throw_if_error();
}

void change_setting(const std::string& name, const std::string& value) {
  set_setting(name, value).throw_if_error();
}

std::string setting(const std::string& name) {
  settings_problem().throw_if_error();
  return setting_text(name).value();
}

void mask_ops(const std::string& device_kind, const std::vector<std::string>& ops) {
  const Device device = parse_device(device_kind);
  for (const std::string& op : ops) {
    if (!OpTable::instance().find(op)) unknown_op(op).throw_if_error();
  }
  Backends::instance().mask(device.kind, ops);
}

MemoryInfo memory_info(Device device) {
  if (!device.is_set()) {
    error(ErrorCode::kUnknownDevice,
          "memory was asked of a device that is not set; name one, such as /CPU:0")
        .throw_if_error();
  }
  const MemoryStats stats = Backends::instance().find(device).value()->memory();
  return {stats.in_use, stats.peak, stats.reserved, stats.limit};
}

void set_interrupt_check(std::function<bool()> check) {
  Executor::instance().set_interrupt_check(std::move(check));
}

void synchronize() {
  trace::flush_pending(Trigger::kExit);
  Status first;
  for (DeviceBackend* device : Backends::instance().devices()) {
    const Status status = synchronize_device(device->device());
    if (first.ok()) first = status;
  }
  trace::take_failure().throw_if_error();
  first.throw_if_error();
}

Variable variable_of(const trace::SlotPtr& slot) { return Variable(slot); }

}  // namespace tracefire
