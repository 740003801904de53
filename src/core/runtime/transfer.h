// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/api/device_backend.h"
#include "tracefire/control.h"

namespace tracefire {

/// Bytes of a value with constant shape; strings count their objects.
size_t storage_bytes(const ValueType& type);

/// New storage for a value of constant shape. Strings get constructed objects.
Result<Storage> allocate_storage(Device device, const ValueType& type, const char* what);

/// Copies a value between any two storages, through the host where devices differ. In stream order
/// on a device; complete when the call returns where the host or a CPU is involved.
Status copy_value(const ValueType& type, const Storage& source, const Storage& target);

/// Value -> host array and back.
Result<HostArray> to_host(const ValueType& type, const Storage& source);
Result<Storage> from_host_array(const HostArray& array, Device device);

/// Waits for a device's lane 0 and tells the event sink.
Status synchronize_device(Device device);

}  // namespace tracefire
