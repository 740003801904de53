// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/transfer.h"

#include <algorithm>
#include <cstdint>

#include "core/base/event.h"
#include "core/base/guard.h"

namespace tracefire {
namespace {

/// A host array of strings; the only buffer that holds objects.
class StringBuffer final : public Buffer {
 public:
  explicit StringBuffer(size_t count)
      : Buffer(nullptr, count * sizeof(std::string), Device{Device::kCpu, 0}), strings_(count) {
    data_ = strings_.data();
  }

 private:
  std::vector<std::string> strings_;
};

std::string* strings_of(const Storage& storage) {
  return static_cast<std::string*>(storage.data());
}

size_t element_count(const ValueType& type) {
  return static_cast<size_t>(type.shape.elements().value());
}

}  // namespace

size_t storage_bytes(const ValueType& type) {
  const size_t size = dtype_size(type.dtype);
  const Dim elements = type.shape.elements();
  // Sizes saturate: what cannot be addressed is refused by every device.
  const auto count = static_cast<size_t>(std::max<int64_t>(elements.value(), 0));
  return size != 0 && count > SIZE_MAX / size ? SIZE_MAX : count * size;
}

Result<Storage> allocate_storage(Device device, const ValueType& type, const char* what) {
  if (type.dtype == DType::kString) {
    return guarded([&]() -> Result<Storage> {
      return Storage{std::make_shared<StringBuffer>(element_count(type)), 0};
    });
  }
  TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
  TF_ASSIGN(BufferPtr buffer, backend->allocate(storage_bytes(type), what));
  return Storage{std::move(buffer), 0};
}

Status synchronize_device(Device device) {
  TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
  TF_ASSIGN(Stream * stream, backend->stream(0));
  const int64_t start = Events::now_ns();
  Status status = stream->synchronize();
  if (!backend->host_addressable()) Events::instance().publish_synchronize(device, start);
  return status;
}

Status copy_value(const ValueType& type, const Storage& source, const Storage& target) {
  if (type.dtype == DType::kString) {
    std::copy_n(strings_of(source), element_count(type), strings_of(target));
    return {};
  }
  const size_t bytes = storage_bytes(type);
  if (bytes == 0 || source.data() == target.data()) return {};
  const Device from = source.buffer->device(), to = target.buffer->device();
  TF_ASSIGN(DeviceBackend * source_device, Backends::instance().find(from));
  TF_ASSIGN(DeviceBackend * target_device, Backends::instance().find(to));
  TF_ASSIGN(Stream * source_stream, source_device->stream(0));
  TF_ASSIGN(Stream * target_stream, target_device->stream(0));
  Events& events = Events::instance();
  if (from == to) return target_device->copy(*target_stream, target.data(), source.data(), bytes);
  if (source_device->host_addressable()) {
    TF_RETURN_IF_ERROR(source_stream->synchronize());
    if (!target_device->host_addressable()) {
      events.publish(CopyEvent{CopyKind::kHostToDevice, bytes, "between devices"});
    }
    return target_device->copy_in(*target_stream, target.data(), source.data(), bytes);
  }
  const int64_t start = Events::now_ns();
  events.publish(CopyEvent{CopyKind::kDeviceToHost, bytes, "between devices"});
  if (target_device->host_addressable()) {
    const Status copied =
        source_device->copy_out(*source_stream, target.data(), source.data(), bytes);
    events.publish_synchronize(from, start);
    return copied;
  }
  std::vector<char> bounce(bytes);
  const Status copied =
      source_device->copy_out(*source_stream, bounce.data(), source.data(), bytes);
  events.publish_synchronize(from, start);
  TF_RETURN_IF_ERROR(copied);
  events.publish(CopyEvent{CopyKind::kHostToDevice, bytes, "between devices"});
  return target_device->copy_in(*target_stream, target.data(), bounce.data(), bytes);
}

Result<HostArray> to_host(const ValueType& type, const Storage& source) {
  HostArray array;
  array.dtype = type.dtype;
  array.sizes = type.shape.sizes();
  if (type.dtype == DType::kString) {
    array.strings.assign(strings_of(source), strings_of(source) + element_count(type));
    return array;
  }
  array.bytes.resize(storage_bytes(type));
  if (array.bytes.empty()) return array;
  const Device device = source.buffer->device();
  TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
  TF_ASSIGN(Stream * stream, backend->stream(0));
  const int64_t start = Events::now_ns();
  TF_RETURN_IF_ERROR(
      backend->copy_out(*stream, array.bytes.data(), source.data(), array.bytes.size()));
  if (!backend->host_addressable()) {
    Events::instance().publish(CopyEvent{CopyKind::kDeviceToHost, array.bytes.size(), "observed"});
    Events::instance().publish_synchronize(device, start);
  }
  return array;
}

Result<Storage> from_host_array(const HostArray& array, Device device) {
  if (std::any_of(array.sizes.begin(), array.sizes.end(), [](int64_t size) { return size < 0; })) {
    return error(ErrorCode::kShapeMismatch, "an array of shape ", Shape::of(array.sizes).str(),
                 " was given; sizes are 0 or more");
  }
  const ValueType type{array.dtype, Shape::of(array.sizes)};
  if (type.dtype != DType::kString && array.bytes.size() != storage_bytes(type)) {
    return error(ErrorCode::kShapeMismatch, "an array of ", array.bytes.size(),
                 " bytes was given for ", type.str(), ", which has ", storage_bytes(type));
  }
  TF_ASSIGN(Storage storage, allocate_storage(device, type, "host array"));
  if (type.dtype == DType::kString) {
    if (array.strings.size() != element_count(type)) {
      return error(ErrorCode::kShapeMismatch, array.strings.size(), " strings were given for ",
                   type.str());
    }
    std::copy(array.strings.begin(), array.strings.end(), strings_of(storage));
    return storage;
  }
  if (array.bytes.empty()) return storage;
  TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
  TF_ASSIGN(Stream * stream, backend->stream(0));
  TF_RETURN_IF_ERROR(
      backend->copy_in(*stream, storage.data(), array.bytes.data(), array.bytes.size()));
  if (!backend->host_addressable()) {
    Events::instance().publish(
        CopyEvent{CopyKind::kHostToDevice, array.bytes.size(), "host array"});
  }
  return storage;
}

}  // namespace tracefire
