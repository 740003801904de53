// SPDX-License-Identifier: Apache-2.0
// Host data in and out of tensors.
#include <algorithm>
#include <cstdlib>

#include "core/base/guard.h"
#include "core/base/settings.h"
#include "core/engine/engine.h"
#include "core/runtime/host_reader.h"
#include "core/runtime/transfer.h"
#include "tracefire/tensor.h"

namespace tracefire {
namespace {

void check_sizes(DType dtype, const std::vector<int64_t>& sizes) {
  int64_t elements = 1;
  for (int64_t size : sizes) {
    if (size < 0 || (size > 0 && elements > (int64_t{1} << 56) / size)) {
      error(ErrorCode::kShapeMismatch, "sizes ", Shape::of(sizes).str(), " cannot be a tensor of ",
            dtype_name(dtype))
          .throw_if_error();
    }
    elements *= size;
  }
}

Tensor make_leaf(const HostArray& array, Device device) {
  Storage storage = guarded([&] { return from_host_array(array, device); }).value();
  return Tensor(
      trace::make_ready_cell({array.dtype, Shape::of(array.sizes)}, device,
                             std::make_shared<DevicePayload>(std::move(storage), nullptr, 0)));
}

}  // namespace

Tensor Tensor::from_host(const void* data, DType dtype, const std::vector<int64_t>& sizes,
                         Device device) {
  settings_problem().throw_if_error();
  check_sizes(dtype, sizes);
  if (dtype == DType::kString || dtype_size(dtype) == 0) {
    error(ErrorCode::kDTypeMismatch, "bytes cannot be a tensor of ", dtype_name(dtype),
          "; strings go through from_strings")
        .throw_if_error();
  }
  if (!device.is_set()) device = trace::context().device;
  if (!device.is_set()) device = Engine::instance().default_device();
  const ValueType type{dtype, Shape::of(sizes)};
  const size_t bytes = storage_bytes(type);
  if (bytes > 0) {
    if (data == nullptr) {
      error(ErrorCode::kBadAttribute, "null was given as the elements of a ", type.str(),
            " tensor; pass the address of ", bytes, " bytes")
          .throw_if_error();
    }
  }
  Storage storage = allocate_storage(device, type, "tensor from host").value();
  if (bytes > 0) {
    DeviceBackend* backend = Backends::instance().find(device).value();
    Stream* stream = backend->stream(0).value();
    backend->copy_in(*stream, storage.data(), data, bytes).throw_if_error();
    if (!backend->host_addressable()) {
      Events::instance().publish(CopyEvent{CopyKind::kHostToDevice, bytes, "tensor from host"});
    }
  }
  return Tensor(trace::make_ready_cell(
      type, device, std::make_shared<DevicePayload>(std::move(storage), nullptr, 0)));
}

Tensor Tensor::from_strings(std::vector<std::string> values, const std::vector<int64_t>& sizes) {
  check_sizes(DType::kString, sizes);
  check_count(values.size(), sizes);
  HostArray array;
  array.dtype = DType::kString;
  array.sizes = sizes;
  array.strings = std::move(values);
  return make_leaf(array, Device{Device::kCpu, 0});
}

void Tensor::wait() const {
  shape();            // throws for an undefined tensor
  HostReader errors;  // reading what a check left behind is a wait, too
  auto payload = Engine::instance().observe(std::span(&cell_, 1), &errors).value()[0];
  if (!payload || !payload->storage) return;
  const Device device = payload->storage.buffer->device();
  if (!errors.waited_for(device)) synchronize_device(device).throw_if_error();
}

void Tensor::copy_to(void* target, size_t bytes) const {
  shape();  // throws for an undefined tensor
  Engine& engine = Engine::instance();
  auto payload = engine.ready(cell_, Trigger::kObserved).value();
  const ValueType type = bound_type(*cell_, *payload);
  if (type.dtype == DType::kString || bytes != storage_bytes(type)) {
    error(
        ErrorCode::kShapeMismatch, bytes, " bytes were asked of a ", type.str(),
        " tensor, which has ",
        type.dtype == DType::kString ? std::string("strings") : std::to_string(storage_bytes(type)))
        .throw_if_error();
  }
  if (target == nullptr && bytes > 0) {
    error(ErrorCode::kBadAttribute, "the value of a ", type.str(),
          " tensor was to be copied to null; pass the address of ", bytes, " bytes")
        .throw_if_error();
  }
  guarded([&] {
    HostReader reader;
    reader.add(payload->storage, bytes, target);
    return engine.observe(std::span(&cell_, 1), &reader);
  }).value();
}

void Tensor::no_host_memory(size_t bytes) {
  error(ErrorCode::kOutOfMemory, "the host has no ", bytes,
        " bytes for a copy of a tensor's elements; read a part of it")
      .throw_if_error();
  std::abort();  // not reached
}

std::vector<HostValue> fetch(std::span<const Tensor> tensors) {
  std::vector<trace::CellPtr> cells;
  for (const Tensor& tensor : tensors) {
    if (tensor.dtype() == DType::kString) {
      error(ErrorCode::kDTypeMismatch, "fetch received a ", tensor.cell()->type.str(),
            " tensor; strings are read with Tensor::strings()")
          .throw_if_error();
    }
    cells.push_back(tensor.cell());
  }
  Engine& engine = Engine::instance();
  auto payloads = engine.ready(cells, Trigger::kObserved).value();
  HostReader reader;
  std::vector<HostValue> values;
  for (size_t i = 0; i < cells.size(); ++i) {
    const ValueType type = bound_type(*cells[i], *payloads[i]);
    HostValue& value = values.emplace_back();
    value.dtype = type.dtype;
    value.sizes = type.shape.sizes();
    value.bytes = storage_bytes(type);
    reader.add(payloads[i]->storage, value.bytes);
  }
  guarded([&] { return engine.observe(cells, &reader); }).value();
  for (size_t i = 0; i < cells.size(); ++i) {
    values[i].data = reader.data(i);
    values[i].copied = reader.copied(i);
    values[i].owner = reader.copied(i) ? reader.owner(i) : payloads[i];
  }
  return values;
}

std::vector<std::string> Tensor::strings() const {
  expect_dtype(DType::kString);
  auto payload = Engine::instance().observe(cell_).value();
  return guarded([&] { return to_host(bound_type(*cell_, *payload), payload->storage); })
      .value()
      .strings;
}

std::vector<int64_t> Tensor::sizes() const {
  if (shape().is_constant()) return shape().sizes();
  return Engine::instance().observe(cell_).value()->sizes;
}

size_t Tensor::element_count() const {
  size_t count = 1;
  for (int64_t size : sizes()) count *= static_cast<size_t>(size);
  return count;
}

}  // namespace tracefire
