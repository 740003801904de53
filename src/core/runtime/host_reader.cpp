// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/host_reader.h"

#include <cstring>

#include "core/base/event.h"

namespace tracefire {
namespace {

/// Values lie at multiples of this in a block, so that any element type may be read in place.
constexpr size_t kAlignment = 64;
/// A block takes as much device memory again as its values: larger ones travel by themselves.
constexpr size_t kMostBlockBytes = size_t{256} << 20;

void tell(Device device, size_t bytes, int64_t start_ns) {
  Events::instance().publish(CopyEvent{CopyKind::kDeviceToHost, bytes, "observed"});
  Events::instance().publish_synchronize(device, start_ns);
}

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

size_t HostReader::add(Storage source, size_t bytes, void* target) {
  const size_t number = reads_.size();
  if (bytes > 0) by_device_[source.buffer->device()].push_back(number);
  Read& read = reads_.emplace_back();
  read.source = std::move(source);
  read.bytes = bytes;
  read.target = target;
  return number;
}

Status HostReader::run() {
  for (const auto& [device, reads] : by_device_) {
    TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
    TF_ASSIGN(Stream * stream, backend->stream(0));
    TF_RETURN_IF_ERROR(run_on(*backend, *stream, reads));
  }
  return {};
}

Status HostReader::run_on(DeviceBackend& backend, Stream& stream,
                          const std::vector<size_t>& reads) {
  if (backend.host_addressable()) {
    TF_RETURN_IF_ERROR(stream.synchronize());
    for (size_t number : reads) {
      Read& read = reads_[number];
      read.data = static_cast<const char*>(read.source.data());
      read.owner = read.source.buffer;
      if (read.target == nullptr) continue;
      TF_RETURN_IF_ERROR(backend.copy_out(stream, read.target, read.data, read.bytes));
    }
    return {};
  }
  std::vector<size_t> together;
  size_t block = 0;
  for (size_t number : reads) {
    const size_t bytes = aligned(reads_[number].bytes);
    if (bytes <= kMostBlockBytes - block) {
      block += bytes;
      together.push_back(number);
    } else {
      TF_RETURN_IF_ERROR(read_block(backend, stream, {number}));
    }
  }
  return together.empty() ? Status{} : read_block(backend, stream, together);
}

Status HostReader::read_block(DeviceBackend& backend, Stream& stream,
                              const std::vector<size_t>& reads) {
  if (reads.size() == 1) return read_alone(backend, stream, &reads_[reads[0]]);
  size_t block = 0, bytes = 0;
  for (size_t number : reads) {
    block += aligned(reads_[number].bytes);
    bytes += reads_[number].bytes;
  }
  const Result<BufferPtr> gathered = backend.allocate(block, "values being read");
  if (!gathered.ok()) {  // no memory to spare: a value at a time needs none
    for (size_t number : reads) {
      TF_RETURN_IF_ERROR(read_alone(backend, stream, &reads_[number]));
    }
    return {};
  }
  char* const place = static_cast<char*>((*gathered)->data());
  size_t offset = 0;
  for (size_t number : reads) {
    const Read& read = reads_[number];
    TF_RETURN_IF_ERROR(backend.copy(stream, place + offset, read.source.data(), read.bytes));
    offset += aligned(read.bytes);
  }
  Events::instance().publish(CopyEvent{CopyKind::kDeviceToDevice, bytes, "values read together"});
  const std::shared_ptr<char[]> memory(new char[block]);
  const int64_t start = Events::now_ns();
  TF_RETURN_IF_ERROR(backend.copy_out(stream, memory.get(), place, block));
  tell(backend.device(), bytes, start);
  offset = 0;
  for (size_t number : reads) {
    Read& read = reads_[number];
    read.data = memory.get() + offset;
    read.owner = memory;
    read.copied = true;
    if (read.target != nullptr) std::memcpy(read.target, read.data, read.bytes);
    offset += aligned(read.bytes);
  }
  return {};
}

Status HostReader::read_alone(DeviceBackend& backend, Stream& stream, Read* read) {
  char* place = static_cast<char*>(read->target);
  if (place == nullptr) {
    const std::shared_ptr<char[]> memory(new char[read->bytes]);
    read->owner = memory;
    place = memory.get();
  }
  const int64_t start = Events::now_ns();
  TF_RETURN_IF_ERROR(backend.copy_out(stream, place, read->source.data(), read->bytes));
  tell(backend.device(), read->bytes, start);
  read->data = place;
  read->copied = true;
  return {};
}

}  // namespace tracefire
