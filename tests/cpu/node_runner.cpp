// SPDX-License-Identifier: Apache-2.0
#include "cpu/node_runner.h"

#include <cstring>

#include "backends/cpu/move/numbers.h"
#include "core/base/thread_pool.h"
#include "core/compile/compile.h"
#include "tracefire/error.h"

namespace tracefire::test {
namespace {

const Kernel* choose(DeviceBackend* device, const NodeView& view, const char* wanted) {
  std::string refusals;
  for (const Kernel* kernel : device->kernels(view.node->op)) {
    if (wanted != nullptr && kernel->name() != wanted) continue;
    const Answer answer = kernel->accept(view);
    if (answer.accepted) return kernel;
    refusals += std::string(kernel->name()) + ": " + answer.refusal + "; ";
  }
  error(ErrorCode::kNoKernel, "no kernel accepts the node: ", refusals).throw_if_error();
  return nullptr;
}

/// Buffers of one run: arrays in device memory, string objects in vectors.
struct Arrays {
  std::vector<BufferPtr> buffers;
  std::vector<std::vector<std::string>> strings;
  std::vector<void*> pointers;

  explicit Arrays(size_t count) : buffers(count), strings(count), pointers(count) {}
  void make(DeviceBackend* device, size_t i, DType dtype, int64_t elements) {
    if (dtype == DType::kString) {
      strings[i].resize(static_cast<size_t>(elements));
      pointers[i] = strings[i].data();
      return;
    }
    buffers[i] =
        device->allocate(static_cast<size_t>(elements) * dtype_size(dtype), "test").value();
    pointers[i] = buffers[i]->data();
  }
};

}  // namespace

int64_t HostTensor::elements() const {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

double HostTensor::at(int64_t i) const {
  const char* element = bytes.data() + static_cast<size_t>(i) * dtype_size(dtype);
  return dtype == DType::kBool ? *element : cpu::load_number(dtype, element);
}

std::vector<double> HostTensor::numbers() const {
  std::vector<double> all;
  for (int64_t i = 0; i < elements(); ++i) all.push_back(at(i));
  return all;
}

HostTensor tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& values) {
  HostTensor result{dtype, std::move(sizes), {}, {}};
  const size_t size = dtype_size(dtype);
  result.bytes.resize(static_cast<size_t>(result.elements()) * size);
  for (int64_t i = 0; i < result.elements(); ++i) {
    const double value = values[values.size() == 1 ? 0 : static_cast<size_t>(i)];
    char* element = result.bytes.data() + static_cast<size_t>(i) * size;
    if (dtype == DType::kBool) {
      *element = value != 0;
    } else {
      cpu::with_real(dtype, [&](auto tag) {
        using T = decltype(tag);
        T typed;
        if constexpr (std::is_integral_v<T>) {  // what does not fit wraps around
          typed = value < 0 ? static_cast<T>(static_cast<int64_t>(value))
                            : static_cast<T>(static_cast<uint64_t>(value));
        } else {
          typed = static_cast<T>(static_cast<cpu::Computed<T>>(value));
        }
        std::memcpy(element, &typed, sizeof(T));
      });
    }
  }
  return result;
}

HostTensor string_tensor(std::vector<int64_t> sizes, std::vector<std::string> values) {
  return HostTensor{DType::kString, std::move(sizes), {}, std::move(values)};
}

HostTensor random_tensor(DType dtype, std::vector<int64_t> sizes, double low, double high,
                         uint32_t seed) {
  std::mt19937 bits(seed);
  HostTensor shape{dtype, sizes, {}, {}};
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const double unit = static_cast<double>(bits()) / 4294967296.0;
    const double value = low + (high - low) * unit;
    values.push_back(is_floating(dtype) ? value : std::floor(value));
  }
  if (values.empty()) values.push_back(0);
  return tensor(dtype, std::move(sizes), values);
}

std::vector<HostTensor> run_node(const char* op, const std::vector<HostTensor>& inputs,
                                 Attrs attrs, RunOptions options) {
  Builder b(OpTable::instance());
  std::vector<Value> values;
  std::vector<ValueType> types;
  for (const HostTensor& input : inputs) {
    types.push_back({input.dtype, Shape::of(input.sizes)});
    values.push_back(b.param(types.back()));
  }
  b.result(b.add(OpTable::instance().id(op), values, std::move(attrs)).value());
  const GraphPtr graph = b.finish().value();
  const Node& node = graph->nodes.back();

  DeviceBackend* device = Backends::instance().find(Device{Device::kCpu, 0}).value();
  const auto loop = emit_loop(*graph, node);
  // A size that depends on data is bound by the input: as much as the executor allocates.
  std::vector<ValueType> outputs = node.outputs;
  for (ValueType& type : outputs) {
    for (int axis = 0; axis < type.shape.rank(); ++axis) {
      if (type.shape[axis].is_symbol()) type.shape[axis] = type.shape[axis].bound();
    }
  }
  NodeView view;
  view.node = &node;
  view.inputs = types;
  view.outputs = outputs;
  view.loop = loop.get();
  const Kernel* kernel = choose(device, view, options.kernel);
  const std::unique_ptr<Launch> launch = kernel->bind(view, *device).value();

  Arrays in(inputs.size()), out(outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.make(device, i, inputs[i].dtype, inputs[i].elements());
    if (inputs[i].dtype == DType::kString) {
      in.strings[i] = inputs[i].strings;
      in.pointers[i] = in.strings[i].data();
    } else if (!inputs[i].bytes.empty()) {
      std::memcpy(in.pointers[i], inputs[i].bytes.data(), inputs[i].bytes.size());
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    out.make(device, i, outputs[i].dtype, outputs[i].shape.elements().value());
  }
  if (options.in_place) out.pointers[0] = in.pointers[0];
  const BufferPtr workspace = device->allocate(launch->workspace_bytes(), "workspace").value();
  ErrorWord word;
  Stream* stream = device->stream(0).value();
  const LaunchArgs args{*stream, in.pointers, out.pointers, workspace->data(), &word, 7};
  Status status;
  if (options.one_thread) {
    // Inside a chunk of the pool everything runs where it is.
    parallel_for(2, 1, [&](int64_t begin, int64_t end) {
      if (begin <= 0 && 0 < end) status = launch->run(args);
    });
  } else {
    status = launch->run(args);
  }
  status.throw_if_error();
  if (options.error != nullptr) *options.error = word;

  std::vector<HostTensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    HostTensor result{outputs[i].dtype, outputs[i].shape.sizes(), {}, {}};
    if (result.dtype == DType::kString) {
      result.strings = out.strings[i];
    } else {
      result.bytes.resize(static_cast<size_t>(result.elements()) * dtype_size(result.dtype));
      if (!result.bytes.empty()) {
        std::memcpy(result.bytes.data(), out.pointers[i], result.bytes.size());
      }
    }
    results.push_back(std::move(result));
  }
  return results;
}

bool near(double a, double b, double tolerance) {
  if (std::isnan(b)) return std::isnan(a);
  if (std::isinf(b)) return a == b;
  return std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b));
}

int64_t first_difference(const HostTensor& got, const std::vector<double>& wanted,
                         double tolerance) {
  if (got.elements() != static_cast<int64_t>(wanted.size())) return 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    if (!near(got.at(i), wanted[static_cast<size_t>(i)], tolerance)) return i;
  }
  return -1;
}

}  // namespace tracefire::test
