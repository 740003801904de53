// SPDX-License-Identifier: Apache-2.0
// Element-wise and fused nodes: a loop program interpreted tile by tile. A tile's registers stay in
// the first-level cache, and each instruction is one vectorised loop over them (see tile/).

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/loop/loop_plan.h"

namespace tracefire::cpu {
namespace {

using Home = LoopPlan::Home;

/// Scratch memory of one thread, kept from loop to loop.
char* scratch(size_t bytes) {
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  thread_local std::unique_ptr<char, Free> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    size = (bytes + 4095) / 4096 * 4096;
    memory.reset(static_cast<char*>(std::aligned_alloc(64, size)));
  }
  return memory.get();
}

template <class T>
void fill_as(void* target, int64_t n, double real, int64_t integer) {
  const T value = std::is_floating_point_v<T> ? static_cast<T>(real) : static_cast<T>(integer);
  std::fill_n(static_cast<T*>(target), n, value);
}

void fill_constant(RegType type, void* target, int64_t n, double real, int64_t integer) {
  switch (type) {
    case RegType::kF32: return fill_as<float>(target, n, real, integer);
    case RegType::kF64: return fill_as<double>(target, n, real, integer);
    case RegType::kI8: return fill_as<int8_t>(target, n, real, integer);
    case RegType::kI16: return fill_as<int16_t>(target, n, real, integer);
    case RegType::kI32: return fill_as<int32_t>(target, n, real, integer);
    case RegType::kI64: return fill_as<int64_t>(target, n, real, integer);
    case RegType::kBool:
    case RegType::kU8: return fill_as<uint8_t>(target, n, real, integer);
    case RegType::kU16: return fill_as<uint16_t>(target, n, real, integer);
    case RegType::kU32: return fill_as<uint32_t>(target, n, real, integer);
    case RegType::kU64: return fill_as<uint64_t>(target, n, real, integer);
    case RegType::kC64:
    case RegType::kC128: return;  // no program has constants of them
  }
}

/// Repeats the element of `size` bytes at `target` over `n` elements.
void repeat(char* target, size_t size, int64_t n) {
  const size_t total = size * static_cast<size_t>(n);
  for (size_t done = size; done < total; done *= 2) {
    std::memcpy(target + done, target, std::min(done, total - done));
  }
}

/// Coordinates along one axis of elements first, first + 1, …
template <class T>
void fill_index(void* target, int64_t n, int64_t first, int64_t size, int64_t stride) {
  T* out = static_cast<T*>(target);
  int64_t value = first / stride % size, into = first % stride;
  for (int64_t i = 0; i < n;) {
    const int64_t run = stride == 1 ? std::min(size - value, n - i) : std::min(stride - into, n - i);
    if (stride == 1) {
      for (int64_t k = 0; k < run; ++k) out[i + k] = static_cast<T>(value + k);
      value += run;
    } else {
      std::fill_n(out + i, run, static_cast<T>(value));
      into += run;
      if (into == stride) {
        into = 0;
        ++value;
      }
    }
    if (value == size) value = 0;
    i += run;
  }
}

void index_tile(RegType type, void* target, int64_t n, int64_t first, int64_t size,
                int64_t stride) {
  switch (reg_size(type)) {
    case 1: return fill_index<uint8_t>(target, n, first, size, stride);
    case 2: return fill_index<uint16_t>(target, n, first, size, stride);
    case 4:
      if (type == RegType::kF32) return fill_index<float>(target, n, first, size, stride);
      return fill_index<uint32_t>(target, n, first, size, stride);
    default:
      if (type == RegType::kF64) return fill_index<double>(target, n, first, size, stride);
      return fill_index<uint64_t>(target, n, first, size, stride);
  }
}

/// One run of a plan over the arrays of one launch.
class Runner {
 public:
  Runner(const LoopPlan& plan, const BoundLoop& bound, const LaunchArgs& args,
         FirstFailure* not_finite)
      : plan_(plan), bound_(bound), args_(args), not_finite_(not_finite) {}

  /// Tiles begin … end - 1.
  void run(int64_t begin, int64_t end) const {
    // Two more slots for conversions of strided inputs and bit casts.
    const size_t slot = plan_.slot_size * static_cast<size_t>(plan_.tile);
    const size_t spare = 16 * static_cast<size_t>(plan_.tile);
    char* memory = scratch(slot * static_cast<size_t>(plan_.slots) + spare);
    char* temporary = memory + slot * static_cast<size_t>(plan_.slots);
    std::vector<char*> at(plan_.registers.size(), nullptr);
    for (size_t r = 0; r < at.size(); ++r) {
      const LoopPlan::Register& reg = plan_.registers[r];
      if (reg.home == Home::kSlot || reg.home == Home::kFixed) {
        if (reg.index >= 0) at[r] = memory + slot * static_cast<size_t>(reg.index);
      }
    }
    fill_fixed(at);
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * plan_.tile;
      run_tile(at, temporary, first, std::min(plan_.tile, bound_.elements - first));
    }
  }

 private:
  const char* input(size_t i) const { return static_cast<const char*>(args_.inputs[i]); }
  char* output(size_t i) const { return static_cast<char*>(args_.outputs[i]); }

  void fill_fixed(const std::vector<char*>& at) const {
    const int64_t n = std::min(plan_.tile, bound_.elements);
    for (const LoopPlan::Constant& constant : plan_.constants) {
      const size_t reg = static_cast<size_t>(constant.reg);
      fill_constant(plan_.registers[reg].type, at[reg], n, constant.imm, constant.imm_int);
    }
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      const LoopPlan::Input& from = plan_.inputs[i];
      if (from.reg < 0) continue;
      const LoopPlan::Register& reg = plan_.registers[static_cast<size_t>(from.reg)];
      if (reg.home != Home::kFixed) continue;
      char* target = at[static_cast<size_t>(from.reg)];
      if (from.load) {
        from.load(target, input(i), nullptr, nullptr, 1);
      } else {
        std::memcpy(target, input(i), from.size);
      }
      repeat(target, reg_size(reg.type), n);
    }
  }

  void run_tile(std::vector<char*>& at, char* temporary, int64_t first, int64_t n) const {
    for (size_t r = 0; r < at.size(); ++r) {
      const LoopPlan::Register& reg = plan_.registers[r];
      if (reg.home == Home::kOutput) {
        const size_t i = static_cast<size_t>(reg.index);
        at[r] = output(i) + static_cast<size_t>(first) * plan_.outputs[i].size;
      }
    }
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      if (plan_.inputs[i].reg >= 0) load(at, temporary, i, first, n);
    }
    for (const LoopPlan::Step& step : plan_.steps) run_step(step, at, temporary, first, n);
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const LoopPlan::Output& to = plan_.outputs[i];
      if (to.in_home) continue;
      char* target = output(i) + static_cast<size_t>(first) * to.size;
      const char* source = at[static_cast<size_t>(to.reg)];
      if (to.store) {
        to.store(target, source, nullptr, nullptr, n);
      } else if (target != source) {
        std::memcpy(target, source, static_cast<size_t>(n) * to.size);
      }
    }
  }

  void load(std::vector<char*>& at, char* temporary, size_t i, int64_t first, int64_t n) const {
    const LoopPlan::Input& from = plan_.inputs[i];
    const size_t r = static_cast<size_t>(from.reg);
    const LoopPlan::Register& reg = plan_.registers[r];
    if (reg.home == Home::kFixed) return;
    if (bound_.access[i] == BoundLoop::Access::kFlat) {
      char* source = const_cast<char*>(input(i)) + static_cast<size_t>(first) * from.size;
      if (reg.home == Home::kInput) {
        at[r] = source;
      } else if (from.load) {
        from.load(at[r], source, nullptr, nullptr, n);
      } else {
        std::memcpy(at[r], source, static_cast<size_t>(n) * from.size);
      }
      return;
    }
    char* gathered = from.load ? temporary : at[r];
    gather(gathered, i, first, n);
    if (from.load) from.load(at[r], gathered, nullptr, nullptr, n);
  }

  /// Elements first … first + n - 1 of a strided input, row by row of the innermost axis.
  void gather(char* target, size_t i, int64_t first, int64_t n) const {
    const LoopPlan::Input& from = plan_.inputs[i];
    const std::vector<int64_t>& sizes = bound_.sizes;
    const std::vector<int64_t>& strides = bound_.strides[i];
    const size_t last = sizes.size() - 1;
    const int64_t inner = sizes[last], stride = strides[last];
    int64_t index[8];  // a bound loop has at most eight axes
    int64_t rest = first, offset = 0;
    for (size_t axis = sizes.size(); axis-- > 0;) {
      index[axis] = rest % sizes[axis];
      rest /= sizes[axis];
      offset += index[axis] * strides[axis];
    }
    while (n > 0) {
      const int64_t run = std::min(inner - index[last], n);
      const char* source = input(i) + offset * static_cast<int64_t>(from.size);
      const size_t bytes = static_cast<size_t>(run) * from.size;
      if (stride == 1) {
        std::memcpy(target, source, bytes);
      } else if (stride == 0) {
        std::memcpy(target, source, from.size);
        repeat(target, from.size, run);
      } else {
        tile_table().gathers[from.gather](target, source, &stride, nullptr, run);
      }
      target += bytes;
      n -= run;
      // On to the start of the next row.
      offset -= index[last] * stride;
      index[last] = 0;
      for (size_t axis = last; axis-- > 0;) {
        offset += strides[axis];
        if (++index[axis] < sizes[axis]) break;
        offset -= sizes[axis] * strides[axis];
        index[axis] = 0;
      }
    }
  }

  void run_step(const LoopPlan::Step& step, const std::vector<char*>& at, char* temporary,
                int64_t first, int64_t n) const {
    const auto pointer = [&at](int32_t reg) {
      return reg < 0 ? nullptr : at[static_cast<size_t>(reg)];
    };
    switch (step.kind) {
      case LoopPlan::Kind::kMap:
        step.fn(pointer(step.out), pointer(step.a), pointer(step.b), pointer(step.c), n);
        return;
      case LoopPlan::Kind::kIndex: {
        const size_t axis = static_cast<size_t>(step.axis);
        index_tile(plan_.registers[static_cast<size_t>(step.out)].type, pointer(step.out), n,
                   first, bound_.axis_sizes[axis], bound_.axis_strides[axis]);
        return;
      }
      case LoopPlan::Kind::kRandom:
        step.random(pointer(step.out),
                    static_cast<const uint32_t*>(args_.inputs[static_cast<size_t>(step.a)]),
                    static_cast<uint64_t>(first), n);
        return;
      case LoopPlan::Kind::kBitcast: {
        const char* source = pointer(step.a);
        size_t size = reg_size(plan_.registers[static_cast<size_t>(step.a)].type);
        if (step.unload) {
          step.unload(temporary, source, nullptr, nullptr, n);
          source = temporary;
          size = reg_size(plan_.registers[static_cast<size_t>(step.out)].type);
        }
        if (step.reload) {
          step.reload(pointer(step.out), source, nullptr, nullptr, n);
        } else {
          std::memcpy(pointer(step.out), source, static_cast<size_t>(n) * size);
        }
        return;
      }
      case LoopPlan::Kind::kCheckFinite: {
        const int64_t good = step.finite(pointer(step.a), n);
        if (good < n) not_finite_->add(first + good);
        return;
      }
    }
  }

  const LoopPlan& plan_;
  const BoundLoop& bound_;
  const LaunchArgs& args_;
  FirstFailure* not_finite_;
};

/// Work that is worth a hand-over to another thread, in nanoseconds.
constexpr double kChunkCost = 20000;

struct LoopLaunch {
  BoundLoop bound;
  LoopPlan direct;  ///< results written where they belong as they are computed
  LoopPlan safe;    ///< for results over the arrays of inputs

  bool shares_arrays(const LaunchArgs& args) const {
    for (const void* out : args.outputs) {
      for (const void* in : args.inputs) {
        if (out == in) return true;
      }
    }
    return false;
  }

  Status operator()(const LaunchArgs& args) const {
    if (bound.elements == 0) return {};
    const LoopPlan& plan = shares_arrays(args) ? safe : direct;
    FirstFailure not_finite;
    const Runner runner(plan, bound, args, &not_finite);
    const int64_t tiles = (bound.elements + plan.tile - 1) / plan.tile;
    const double tile_cost = plan.cost * static_cast<double>(plan.tile);
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(kChunkCost / tile_cost));
    parallel_for(tiles, grain, [&](int64_t begin, int64_t end) { runner.run(begin, end); });
    if (not_finite.any()) report(args, ErrorCode::kNotFinite, not_finite.index());
    return {};
  }
};

Answer accept_loop(const NodeView& node) {
  if (node.loop == nullptr) {
    return Answer::no("the node is no loop over numbers (strings, complex or 4-bit elements)");
  }
  const std::string why = loop_refusal(*node.loop);
  return why.empty() ? Answer::yes() : Answer::no(why);
}

BoundLaunch bind_loop_launch(const NodeView& node) {
  const LoopProgram& program = *node.loop;
  // Inputs of the program are those of the node, and results have the shape of the loop.
  std::vector<std::vector<int64_t>> inputs;
  for (const ValueType& input : node.inputs) inputs.push_back(sizes_of(input));
  LoopLaunch launch;
  launch.bound = bind_loop(program, sizes_of(node.outputs[0]), inputs);
  launch.direct = make_loop_plan(program, launch.bound, true);
  launch.safe = make_loop_plan(program, launch.bound, false);
  return make_launch("cpu_loop", std::move(launch));
}

}  // namespace

std::vector<KernelSpec> loop_kernels() {
  std::vector<KernelSpec> specs;
  for (const OpRow& row : OpTable::instance().rows()) {
    const std::string_view name = row.name;
    const bool loop = row.op_class == OpClass::kElementwise || name == "fused" ||
                      name == "broadcast_to" || name == "iota" || name == "random_bits";
    if (loop) specs.push_back({row.name, "cpu_loop", accept_loop, bind_loop_launch, true});
  }
  return specs;
}

}  // namespace tracefire::cpu
