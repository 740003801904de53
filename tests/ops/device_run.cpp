// SPDX-License-Identifier: Apache-2.0
#include "ops/device_run.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "core/compile/compile.h"

namespace tracefire::test {

BoundNode::BoundNode(GraphPtr graph, DeviceBackend& device) : graph_(std::move(graph)) {
  for (const Param& param : graph_->params) inputs_.push_back(param.type);
  loop_ = emit_loop(*graph_, node());
  view_.node = &node();
  view_.inputs = inputs_;
  view_.outputs = node().outputs;
  view_.loop = loop_.get();
  view_.precision = Precision::kHighest;
  device.prepare({&view_, 1}).throw_if_error();
}

namespace {

/// A device buffer with an array's elements; strings are objects in it.
class DeviceArray {
 public:
  static Result<std::unique_ptr<DeviceArray>> make(DeviceBackend& device, const ref::Array& array) {
    auto result = std::make_unique<DeviceArray>();
    result->count_ = static_cast<size_t>(array.count());
    result->text_ = array.dtype == DType::kString;
    const size_t bytes = std::max<size_t>(result->count_ * dtype_size(array.dtype), 1);
    TF_ASSIGN(result->buffer_, device.allocate(bytes, "case"));
    if (result->text_) {
      std::string* text = static_cast<std::string*>(result->data());
      for (size_t i = 0; i < result->count_; ++i) new (text + i) std::string(array.text[i]);
    } else if (result->count_ > 0) {
      const std::string host = ref::bytes_of(array);
      TF_ASSIGN(Stream * stream, device.stream(0));
      TF_RETURN_IF_ERROR(device.copy_in(*stream, result->data(), host.data(), host.size()));
    }
    return result;
  }
  ~DeviceArray() {
    if (!text_ || !buffer_) return;
    std::destroy_n(static_cast<std::string*>(data()), count_);
  }
  void* data() const { return buffer_->data(); }

  Result<ref::Array> read(DeviceBackend& device, const ref::Array& like) const {
    if (text_) return ref::load(data(), like.dtype, like.sizes);
    std::string host(count_ * dtype_size(like.dtype), '\0');
    TF_ASSIGN(Stream * stream, device.stream(0));
    if (!host.empty()) {
      TF_RETURN_IF_ERROR(device.copy_out(*stream, host.data(), data(), host.size()));
    }
    return ref::from_bytes(host, like.dtype, like.sizes);
  }

 private:
  BufferPtr buffer_;
  size_t count_ = 0;
  bool text_ = false;
};

double now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Result<DeviceResult> run_kernel(DeviceBackend& device, const Kernel& kernel, const NodeView& view,
                                const std::vector<ref::Array>& inputs,
                                const std::vector<ref::Array>& shapes, bool timed) {
  std::vector<std::unique_ptr<DeviceArray>> arrays;
  std::vector<void*> in, out;
  for (const ref::Array& input : inputs) {
    TF_ASSIGN(auto array, DeviceArray::make(device, input));
    in.push_back(array->data());
    arrays.push_back(std::move(array));
  }
  for (const ref::Array& shape : shapes) {
    TF_ASSIGN(auto array, DeviceArray::make(device, ref::Array(shape.dtype, shape.sizes)));
    out.push_back(array->data());
    arrays.push_back(std::move(array));
  }
  ref::Array zero_word(DType::kU64, {static_cast<int64_t>(sizeof(ErrorWord) / 8)});
  TF_ASSIGN(auto word, DeviceArray::make(device, zero_word));
  TF_ASSIGN(const std::unique_ptr<Launch> launch, kernel.bind(view, device));
  BufferPtr workspace;
  if (launch->workspace_bytes() > 0) {
    TF_ASSIGN(workspace, device.allocate(launch->workspace_bytes(), "workspace"));
  }
  TF_ASSIGN(Stream * stream, device.stream(0));
  const LaunchArgs args{*stream,
                        in,
                        out,
                        workspace ? workspace->data() : nullptr,
                        static_cast<ErrorWord*>(word->data()),
                        4};
  TF_RETURN_IF_ERROR(launch->run(args));
  TF_RETURN_IF_ERROR(stream->synchronize());
  DeviceResult result;
  if (timed) {
    result.seconds = 1e9;
    const double begin = now();
    for (int turn = 0; turn < 5 || now() - begin < 0.2; ++turn) {
      const double start = now();
      TF_RETURN_IF_ERROR(launch->run(args));
      TF_RETURN_IF_ERROR(stream->synchronize());
      result.seconds = std::min(result.seconds, now() - start);
    }
    return result;
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    TF_ASSIGN(ref::Array output, arrays[inputs.size() + i]->read(device, shapes[i]));
    result.outputs.push_back(std::move(output));
  }
  ErrorWord host;
  TF_RETURN_IF_ERROR(device.copy_out(*stream, &host, word->data(), sizeof host));
  if (host.step_plus_one == 5) {
    result.failure = ref::Failure{static_cast<ErrorCode>(host.code), host.detail};
  } else if (host.step_plus_one != 0) {
    return error(ErrorCode::kInternal, "the error word names step ", host.step_plus_one,
                 " instead of 5");
  }
  return result;
}

std::vector<DeviceBackend*> case_devices() {
  std::vector<DeviceBackend*> devices = Backends::instance().devices();
  const Device oracle{register_device_kind("REF"), 0};
  devices.push_back(Backends::instance().find(oracle).value());
  return devices;
}

}  // namespace tracefire::test
