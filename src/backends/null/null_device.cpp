// SPDX-License-Identifier: Apache-2.0
#include "backends/null/null_device.h"

#include <cstring>
#include <map>
#include <mutex>

namespace tracefire {
namespace {

/// Counters that launches and streams share with their device.
struct Counters {
  std::atomic<uint64_t> launches{0}, captures{0}, captured_kernels{0}, replays{0};
  std::atomic<uint64_t> copies_in{0}, copies_out{0}, copies{0}, bytes_in{0}, bytes_out{0};
};

class NullStream final : public Stream {
 public:
  NullStream(Device device, int lane) : device_(device), lane_(lane) {}
  Device device() const override { return device_; }
  int lane() const override { return lane_; }
  Status synchronize() override {
    if (!capturing) return {};
    return error(ErrorCode::kInternal, "a stream of ", device_.str(),
                 " was synchronised while it was being captured; please report it.");
  }
  Status wait_for(Stream&) override { return {}; }

  bool capturing = false;
  size_t recorded = 0;  ///< kernels since the capture began

 private:
  Device device_;
  int lane_;
};

class NullGraph final : public CapturedGraph {
 public:
  NullGraph(size_t nodes, std::shared_ptr<Counters> counters)
      : nodes_(nodes), counters_(std::move(counters)) {}
  Status launch(Stream&) override {
    ++counters_->replays;
    return {};
  }
  size_t nodes() const override { return nodes_; }

 private:
  size_t nodes_;
  std::shared_ptr<Counters> counters_;
};

class NullLaunch final : public Launch {
 public:
  NullLaunch(std::string symbol, std::shared_ptr<Counters> counters)
      : symbol_(std::move(symbol)), counters_(std::move(counters)) {}
  Status run(const LaunchArgs& args) const override {
    NullStream& stream = static_cast<NullStream&>(args.stream);
    if (stream.capturing) {
      ++stream.recorded;
      ++counters_->captured_kernels;
    } else {
      ++counters_->launches;
    }
    return {};
  }
  std::vector<std::string> kernel_names() const override { return {symbol_}; }

 private:
  std::string symbol_;
  std::shared_ptr<Counters> counters_;
};

class NullKernel final : public Kernel {
 public:
  NullKernel(std::string name, bool in_place, std::shared_ptr<Counters> counters)
      : name_(std::move(name)), in_place_(in_place), counters_(std::move(counters)) {}
  std::string_view name() const override { return name_; }
  std::string_view library() const override { return "null"; }
  bool in_place() const override { return in_place_; }
  Answer accept(const NodeView&) const override { return Answer::yes(); }
  Result<std::unique_ptr<Launch>> bind(const NodeView& node, DeviceBackend&) const override {
    for (std::span<const ValueType> types : {node.inputs, node.outputs}) {
      for (const ValueType& type : types) {
        if (type.shape.is_constant()) continue;
        return error(ErrorCode::kSymbolUnbound, name_, " was bound with ", type.str(),
                     ", whose sizes have no numbers; please report it.");
      }
    }
    return std::unique_ptr<Launch>(std::make_unique<NullLaunch>(name_, counters_));
  }

 private:
  std::string name_;
  bool in_place_;
  std::shared_ptr<Counters> counters_;
};

/// Addresses and how much of them is in use; shared by the buffers.
struct Memory {
  std::mutex mutex;
  uintptr_t next = uintptr_t{1} << 40;  // far from anything a process maps at will
  MemoryStats stats;
};

class NullBuffer final : public Buffer {
 public:
  NullBuffer(uintptr_t address, size_t bytes, Device device, std::shared_ptr<Memory> memory)
      : Buffer(reinterpret_cast<void*>(address), bytes, device), memory_(std::move(memory)) {}
  ~NullBuffer() override {
    std::lock_guard<std::mutex> lock(memory_->mutex);
    memory_->stats.in_use -= bytes_;
    memory_->stats.reserved = memory_->stats.in_use;
  }

 private:
  std::shared_ptr<Memory> memory_;
};

class NullDeviceImpl final : public NullDevice {
 public:
  explicit NullDeviceImpl(Device device) {
    info_.device = device;
    info_.name = "null device (computes nothing)";
    info_.architecture = "null";
    kernels_.resize(OpTable::instance().rows().size());
    for (size_t op = 0; op < kernels_.size(); ++op) {
      const OpRow& row = OpTable::instance().row(static_cast<OpId>(op));
      const bool fused = std::string_view(row.name) == "fused";
      if ((row.op_class == OpClass::kControl && !fused) || row.op_class == OpClass::kHost) continue;
      const bool in_place = fused || row.op_class == OpClass::kElementwise ||
                            std::string_view(row.name) == "adam_update";
      owned_.push_back(
          std::make_unique<NullKernel>(std::string("null_") + row.name, in_place, counters_));
      kernels_[op] = {owned_.back().get()};
    }
  }

  const DeviceInfo& info() const override { return info_; }

  Result<BufferPtr> allocate(size_t bytes, const char* what) override {
    constexpr size_t kGranularity = 512;
    if (bytes > size_t{1} << 47) {  // no machine addresses more
      return error(ErrorCode::kOutOfMemory, "'", what, "' needs ", bytes, " bytes on ",
                   info_.device.str(), "; use smaller tensors");
    }
    const size_t rounded = (std::max<size_t>(bytes, 1) + kGranularity - 1) / kGranularity *
                           kGranularity;
    std::lock_guard<std::mutex> lock(memory_->mutex);
    const uintptr_t address = memory_->next;
    memory_->next += rounded;
    MemoryStats& stats = memory_->stats;
    stats.in_use += rounded;
    stats.reserved = stats.in_use;
    stats.peak = std::max(stats.peak, stats.in_use);
    return BufferPtr(std::make_shared<NullBuffer>(address, rounded, info_.device, memory_));
  }
  MemoryStats memory() const override {
    std::lock_guard<std::mutex> lock(memory_->mutex);
    return memory_->stats;
  }
  void reset_peak() override {
    std::lock_guard<std::mutex> lock(memory_->mutex);
    memory_->stats.peak = memory_->stats.in_use;
  }
  void release_cached() override {}
  bool host_addressable() const override { return false; }

  Result<Stream*> stream(int lane) override {
    std::lock_guard<std::mutex> lock(streams_mutex_);
    std::unique_ptr<NullStream>& stream = streams_[lane];
    if (!stream) stream = std::make_unique<NullStream>(info_.device, lane);
    return stream.get();
  }
  Status copy_in(Stream& stream, void*, const void*, size_t bytes) override {
    TF_RETURN_IF_ERROR(check_host_copy(stream));
    ++counters_->copies_in;
    counters_->bytes_in += bytes;
    return {};
  }
  Status copy_out(Stream& stream, void* target, const void*, size_t bytes) override {
    TF_RETURN_IF_ERROR(check_host_copy(stream));
    ++counters_->copies_out;
    counters_->bytes_out += bytes;
    if (bytes != 0) std::memset(target, 0, bytes);
    return {};
  }
  Status copy(Stream&, void*, const void*, size_t) override {
    ++counters_->copies;
    return {};
  }
  Status fill_zero(Stream&, void*, size_t) override { return {}; }

  const KernelList& kernels(OpId op) const override { return kernels_[op]; }
  Status prepare(std::span<const NodeView>) override { return {}; }

  bool can_capture() const override { return true; }
  Result<std::unique_ptr<CapturedGraph>> capture(
      Stream& stream, const std::function<Status(Stream&)>& body) override {
    NullStream& null = static_cast<NullStream&>(stream);
    null.capturing = true;
    null.recorded = 0;
    const Status status = body(stream);
    null.capturing = false;
    TF_RETURN_IF_ERROR(status);
    ++counters_->captures;
    return std::unique_ptr<CapturedGraph>(std::make_unique<NullGraph>(null.recorded, counters_));
  }

  NullCounts counts() const override {
    const Counters& c = *counters_;
    return {c.launches,   c.captures, c.captured_kernels, c.replays,  c.copies_in,
            c.copies_out, c.copies,   c.bytes_in,         c.bytes_out};
  }

 private:
  /// Copies with the host wait for the device, which a stream in capture cannot do.
  Status check_host_copy(Stream& stream) const {
    if (!static_cast<NullStream&>(stream).capturing) return {};
    return error(ErrorCode::kInternal, "a copy with the host was asked of ", info_.device.str(),
                 " while its stream was being captured; please report it.");
  }

  DeviceInfo info_;
  std::shared_ptr<Counters> counters_ = std::make_shared<Counters>();
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  std::vector<std::unique_ptr<NullKernel>> owned_;
  std::vector<KernelList> kernels_;
  std::mutex streams_mutex_;
  std::map<int, std::unique_ptr<NullStream>> streams_;
};

}  // namespace

std::unique_ptr<NullDevice> make_null_device(Device device) {
  return std::make_unique<NullDeviceImpl>(device);
}

}  // namespace tracefire
