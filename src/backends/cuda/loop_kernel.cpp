// SPDX-License-Identifier: Apache-2.0
// Element-wise, random and fused nodes. A loop of a single operation runs on a kernel that was
// compiled with this library; any other has a kernel of its own, compiled for the GPU at hand.

#include <algorithm>

#include "backends/cuda/emit/ready_loops.h"
#include "backends/cuda/kernel_table.h"
#include "backends/cuda/ready_kernels.h"

namespace tracefire::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr const char* kLoopKernel = "cuda_loop";

/// As the device library's tf_div: q = (umulhi(n, multiplier) + n) >> shift for n < 2^31.
struct Divisor32 {
  uint32_t divisor, multiplier, shift;
  explicit Divisor32(int64_t by) : divisor(static_cast<uint32_t>(by)), shift(0) {
    while ((uint64_t{1} << shift) < divisor) ++shift;
    const uint64_t rest = (uint64_t{1} << shift) - divisor;
    multiplier = static_cast<uint32_t>((rest << 32) / divisor + 1);
  }
};

/// Arguments of a kernel behind its pointers, each at an address that lasts.
class Arguments {
 public:
  template <class T>
  void add(T value) {
    static_assert(sizeof(T) <= sizeof(Cell::bytes));
    std::memcpy(cells_.emplace_back().bytes, &value, sizeof value);
  }
  void add_index(bool wide, int64_t value) {
    if (wide) {
      add(static_cast<uint64_t>(value));
    } else {
      add(static_cast<uint32_t>(value));
    }
  }
  void add_divisor(bool wide, int64_t value) {
    if (wide) {
      add(static_cast<uint64_t>(value));
    } else {
      add(Divisor32(value));
    }
  }
  /// The driver reads the values only.
  void append_to(std::vector<void*>* pointers) const {
    for (const Cell& cell : cells_) pointers->push_back(const_cast<char*>(cell.bytes));
  }

 private:
  struct Cell {
    alignas(8) char bytes[16];
  };
  std::vector<Cell> cells_;
};

Arguments make_arguments(const BoundLoop& bound, const LoopVariant& variant,
                         const LoopKernel& kernel) {
  Arguments arguments;
  arguments.add_index(variant.wide, bound.elements);
  if (!bound.flat) {
    for (size_t axis = 1; axis < bound.sizes.size(); ++axis) {
      arguments.add_divisor(variant.wide, bound.sizes[axis]);
    }
    for (size_t i = 0; i < bound.access.size(); ++i) {
      if (bound.access[i] != BoundLoop::Access::kStrided) continue;
      for (const int64_t stride : bound.strides[i]) arguments.add_index(variant.wide, stride);
    }
  }
  for (const int axis : kernel.index_axes) {
    const size_t a = static_cast<size_t>(axis);
    arguments.add_divisor(variant.wide, bound.axis_strides[a]);
    arguments.add_divisor(variant.wide, bound.axis_sizes[a]);
  }
  return arguments;
}

/// A kernel with its arguments and the threads it takes.
struct Bound {
  LoopVariant variant;
  LoopKernel kernel;
  Arguments arguments;
  LaunchShape shape;
};

struct LoopLaunch {
  std::shared_ptr<const LoopProgram> program;
  CudaDevice* device;
  BoundLoop bound;
  Bound main;
  std::vector<size_t> sizes;  ///< bytes of an element, inputs then outputs

  bool aligned(const LaunchArgs& args) const {
    const auto odd = [&](const void* pointer, size_t size) {
      return reinterpret_cast<uintptr_t>(pointer) %
                 (size * static_cast<size_t>(main.variant.vector)) !=
             0;
    };
    for (size_t i = 0; i < args.inputs.size(); ++i) {
      const bool flat = bound.access[i] == BoundLoop::Access::kFlat;
      if (flat && odd(args.inputs[i], sizes[i])) return false;
    }
    for (size_t i = 0; i < args.outputs.size(); ++i) {
      if (odd(args.outputs[i], sizes[args.inputs.size() + i])) return false;
    }
    return true;
  }

  Status run(const Bound& one, const LaunchArgs& args) const {
    std::vector<void*> inputs(args.inputs.begin(), args.inputs.end());
    std::vector<void*> outputs(args.outputs.begin(), args.outputs.end());
    std::vector<void*> pointers;
    pointers.reserve(inputs.size() + outputs.size() + 32);
    for (void*& input : inputs) pointers.push_back(&input);
    for (void*& output : outputs) pointers.push_back(&output);
    one.arguments.append_to(&pointers);
    ErrorWord* error = args.error;
    unsigned step = args.step;
    if (one.kernel.reports) {
      pointers.push_back(&error);
      pointers.push_back(&step);
    }
    return launch(lane_of(args.stream), one.kernel.function, one.shape, pointers.data());
  }

  Status operator()(const LaunchArgs& args) const;
};

Bound make_bound(const BoundLoop& bound, const LoopVariant& variant, LoopKernel kernel) {
  Bound made{variant, std::move(kernel), {}, {}};
  made.arguments = make_arguments(bound, variant, made.kernel);
  const int64_t threads = (bound.elements + variant.vector - 1) / variant.vector;
  made.shape.block[0] = kThreads;
  made.shape.grid[0] = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  return made;
}

bool is_ready(const LoopProgram& program, const LoopVariant& variant, const CudaDevice& device) {
  return has_ready_kernel(device, loop_kernel_name(program, variant));
}

Result<LoopKernel> ready_loop(const LoopProgram& program, const LoopVariant& variant,
                              CudaDevice& device) {
  LoopSource source = loop_source(program, variant);
  TF_ASSIGN(Function function, ready_kernel(device, source.name));
  return LoopKernel{std::move(function), std::move(source.index_axes), source.reports};
}

/// The kernel of this very variant where there is one by now; else a ready one that is slower but
/// takes the loop as it is; else the variant is compiled.
Result<Bound> bind_variant(const LoopProgram& program, const BoundLoop& bound,
                           const LoopVariant& variant, CudaDevice& device) {
  if (is_ready(program, variant, device)) {
    TF_ASSIGN(LoopKernel kernel, ready_loop(program, variant, device));
    return make_bound(bound, variant, std::move(kernel));
  }
  LoopKernels* const made = device.made_loop_kernels();
  if (made == nullptr || !made->has(program, variant)) {
    const std::optional<GeneralLoop> general = general_loop(program, bound);
    if (general && is_ready(program, general->variant, device)) {
      TF_ASSIGN(LoopKernel kernel, ready_loop(program, general->variant, device));
      return make_bound(general->bound, general->variant, std::move(kernel));
    }
  }
  TF_ASSIGN(LoopKernels* const kernels, device.loop_kernels());
  TF_ASSIGN(LoopKernel kernel, kernels->find(program, variant));
  return make_bound(bound, variant, std::move(kernel));
}

Status LoopLaunch::operator()(const LaunchArgs& args) const {
  if (bound.elements == 0) return {};
  if (main.variant.vector == 1 || aligned(args)) return run(main, args);
  // A view at an odd address: one element a thread. Rare, so it is bound when it turns up.
  TF_ASSIGN(const Bound single,
            bind_variant(*program, bound, scalar_variant(main.variant), *device));
  return run(single, args);
}

Answer accept_loop(const NodeView& node) {
  if (node.loop == nullptr) {
    return Answer::no(
        "cuda: the node is no loop over numbers (strings, complex or 4-bit elements)");
  }
  const std::string why = loop_refusal(*node.loop);
  return why.empty() ? Answer::yes() : Answer::no(why);
}

/// The loop with the numbers that the node's operands have by now.
BoundLoop bound_loop_of(const LoopProgram& program, const NodeView& node) {
  std::vector<std::vector<int64_t>> inputs;
  for (const ValueType& input : node.inputs) inputs.push_back(input.shape.sizes());
  return bind_loop(program, node.outputs[0].shape.sizes(), inputs);
}

BoundLaunch bind_loop_launch(const NodeView& node, CudaDevice& device) {
  LoopLaunch launch;
  // The node's program may go before the launch does.
  launch.program = std::make_shared<LoopProgram>(*node.loop);
  launch.device = &device;
  launch.bound = bound_loop_of(*node.loop, node);
  if (launch.bound.elements == 0) return make_launch({}, std::move(launch));
  const LoopVariant variant =
      choose_variant(*node.loop, launch.bound, device.gpu().multiprocessors);
  TF_ASSIGN(launch.main, bind_variant(*node.loop, launch.bound, variant, device));
  for (const LoopProgram::Input& input : node.loop->inputs) {
    launch.sizes.push_back(dtype_size(input.dtype));
  }
  for (const LoopProgram::Output& output : node.loop->outputs) {
    launch.sizes.push_back(dtype_size(output.dtype));
  }
  const std::string symbol = launch.main.kernel.function.name;
  return make_launch({symbol}, std::move(launch));
}

/// True where the kernel that the node will run on is its loop's.
bool runs_as_loop(const NodeView& node) {
  for (const Kernel* const kernel : kernel_table()[node.node->op]) {
    if (kernel->accept(node).accepted) return kernel->name() == kLoopKernel;
  }
  return false;
}

}  // namespace

Status prepare_loops(std::span<const NodeView> nodes, CudaDevice& device) {
  std::vector<LoopKernels::Wanted> wanted;
  bool must_compile = false;
  for (const NodeView& node : nodes) {
    if (node.loop == nullptr || !runs_as_loop(node)) continue;
    // Sizes that are still symbols are guessed; a wrong guess is compiled when it is bound.
    DimEnv env;
    const auto guess = [&env](const Shape& shape) {
      for (const Dim dim : shape) {
        for (const int32_t symbol : free_symbols(dim)) {
          env.set(symbol, std::min<int64_t>(64, Dim::from_symbol(symbol).bound()));
        }
      }
      return shape.bind(env).sizes();
    };
    const std::vector<int64_t> sizes = guess(node.loop->shape);
    std::vector<std::vector<int64_t>> inputs;
    for (const LoopProgram::Input& input : node.loop->inputs) inputs.push_back(guess(input.shape));
    const BoundLoop bound = bind_loop(*node.loop, sizes, inputs);
    const LoopVariant variant = choose_variant(*node.loop, bound, device.gpu().multiprocessors);
    if (is_ready(*node.loop, variant, device)) continue;
    wanted.push_back({node.loop, variant});
    const std::optional<GeneralLoop> general = general_loop(*node.loop, bound);
    must_compile = must_compile || !general || !is_ready(*node.loop, general->variant, device);
  }
  // Where the compiler is waited for anyhow, what would run on a general kernel gets its own too.
  if (!must_compile) return {};
  TF_ASSIGN(LoopKernels* const kernels, device.loop_kernels());
  return kernels->prepare(wanted);
}

std::vector<KernelSpec> loop_kernel_specs() {
  std::vector<KernelSpec> specs;
  for (const OpRow& row : OpTable::instance().rows()) {
    const std::string_view name = row.name;
    const bool loop = row.op_class == OpClass::kElementwise || name == "fused" ||
                      name == "broadcast_to" || name == "iota" || name == "random_bits";
    if (loop) specs.push_back({row.name, kLoopKernel, accept_loop, bind_loop_launch, true});
  }
  return specs;
}

}  // namespace tracefire::cuda
