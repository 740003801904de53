// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/ref_device.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "backends/ref/oracle.h"

namespace tracefire {
namespace {

struct Usage {
  std::atomic<size_t> in_use{0}, peak{0};
};

class HostBuffer final : public Buffer {
 public:
  HostBuffer(size_t bytes, Device device, std::shared_ptr<Usage> usage)
      : Buffer(::operator new (bytes, std::align_val_t{64}), bytes, device),
        usage_(std::move(usage)) {
    const size_t now = usage_->in_use += bytes;
    size_t peak = usage_->peak;
    while (peak < now && !usage_->peak.compare_exchange_weak(peak, now)) {
    }
  }
  ~HostBuffer() override {
    usage_->in_use -= bytes_;
    ::operator delete (data_, std::align_val_t{64});
  }

 private:
  std::shared_ptr<Usage> usage_;
};

/// Work is done before the call that asks for it returns.
class HostStream final : public Stream {
 public:
  HostStream(Device device, int lane) : device_(device), lane_(lane) {}
  Device device() const override { return device_; }
  int lane() const override { return lane_; }
  Status synchronize() override { return {}; }
  Status wait_for(Stream&) override { return {}; }

 private:
  Device device_;
  int lane_;
};

class OracleLaunch final : public Launch {
 public:
  OracleLaunch(const NodeView& view)
      : node_(*view.node), inputs_(view.inputs.begin(), view.inputs.end()) {
    node_.outputs.assign(view.outputs.begin(), view.outputs.end());
  }

  Status run(const LaunchArgs& args) const override {
    std::vector<ref::Array> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs.push_back(ref::load(args.inputs[i], inputs_[i].dtype, inputs_[i].shape.sizes()));
    }
    std::optional<ref::Failure> failure;
    TF_ASSIGN(const std::vector<ref::Array> results,
              node_.regions.empty() ? ref::evaluate(node_, inputs, &failure)
                                    : ref::run_graph(*node_.regions[0], inputs, &failure));
    for (size_t i = 0; i < results.size(); ++i) ref::store(results[i], args.outputs[i]);
    if (failure && args.error && args.error->step_plus_one == 0) {
      args.error->code = static_cast<uint32_t>(failure->code);
      args.error->detail = failure->detail;
      args.error->step_plus_one = args.step + 1;
    }
    return {};
  }
  std::vector<std::string> kernel_names() const override {
    return {"ref_" + std::string(OpTable::instance().name(node_.op))};
  }

 private:
  Node node_;
  std::vector<ValueType> inputs_;
};

class OracleKernel final : public Kernel {
 public:
  std::string_view name() const override { return "ref"; }
  std::string_view library() const override { return "tracefire"; }
  bool capturable() const override { return false; }
  Answer accept(const NodeView& view) const override {
    for (std::span<const ValueType> types : {view.inputs, view.outputs}) {
      for (const ValueType& type : types) {
        if (is_complex(type.dtype)) return Answer::no("ref: complex elements are not supported");
      }
    }
    return Answer::yes();
  }
  Result<std::unique_ptr<Launch>> bind(const NodeView& view, DeviceBackend&) const override {
    return std::unique_ptr<Launch>(std::make_unique<OracleLaunch>(view));
  }
};

std::vector<KernelList> make_lists() {
  static const OracleKernel kernel;
  const OpTable& ops = OpTable::instance();
  std::vector<KernelList> lists(ops.rows().size());
  for (size_t op = 0; op < lists.size(); ++op) {
    const OpId id = static_cast<OpId>(op);
    if (ref::find_eval(id) || ops.name(id) == "fused") lists[op].push_back(&kernel);
  }
  return lists;
}

class RefDevice final : public DeviceBackend {
 public:
  explicit RefDevice(Device device) : usage_(std::make_shared<Usage>()) {
    info_.device = device;
    info_.name = "oracle";
    info_.architecture = "double";
  }
  const DeviceInfo& info() const override { return info_; }
  Result<BufferPtr> allocate(size_t bytes, const char* what) override {
    try {
      if (bytes > size_t{1} << 47) throw std::bad_alloc();  // which rounding up would hide
      return BufferPtr(std::make_shared<HostBuffer>(bytes, info_.device, usage_));
    } catch (const std::bad_alloc&) {
      return error(ErrorCode::kOutOfMemory, "'", what, "' needs ", bytes, " bytes on ",
                   info_.device.str(), "; the machine has no memory left for it. Use a smaller "
                   "batch, or drop tensors that are no longer needed");
    }
  }
  MemoryStats memory() const override { return {usage_->in_use, usage_->peak, usage_->in_use, 0}; }
  void reset_peak() override { usage_->peak = usage_->in_use.load(); }
  void release_cached() override {}
  bool host_addressable() const override { return true; }
  Result<Stream*> stream(int lane) override {
    std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<HostStream>& stream = streams_[lane];
    if (!stream) stream = std::make_unique<HostStream>(info_.device, lane);
    return stream.get();
  }
  Status copy_in(Stream&, void* target, const void* source, size_t bytes) override {
    return move(target, source, bytes);
  }
  Status copy_out(Stream&, void* target, const void* source, size_t bytes) override {
    return move(target, source, bytes);
  }
  Status copy(Stream&, void* target, const void* source, size_t bytes) override {
    return move(target, source, bytes);
  }
  Status fill_zero(Stream&, void* target, size_t bytes) override {
    if (bytes > 0) std::memset(target, 0, bytes);
    return {};
  }
  const KernelList& kernels(OpId op) const override {
    static const std::vector<KernelList> lists = make_lists();
    return lists[op];
  }
  Status prepare(std::span<const NodeView>) override { return {}; }

 private:
  static Status move(void* target, const void* source, size_t bytes) {
    if (bytes > 0) std::memmove(target, source, bytes);
    return {};
  }

  DeviceInfo info_;
  std::shared_ptr<Usage> usage_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<HostStream>> streams_;
};

}  // namespace

std::unique_ptr<DeviceBackend> make_ref_device(Device device) {
  return std::make_unique<RefDevice>(device);
}

}  // namespace tracefire
