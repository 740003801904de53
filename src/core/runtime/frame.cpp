// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/frame.h"

#include <algorithm>
#include <thread>

#include "core/runtime/transfer.h"

namespace tracefire {

Frame::Frame(Executor& executor, std::shared_ptr<BoundProgram> bound, Instance& instance,
             const RunRequest& request)
    : executor_(executor),
      bound_(std::move(bound)),
      program_(bound_->program()),
      instance_(instance),
      params_(request.params),
      parents_(request.parents),
      results_(program_.results.size()),
      dynamic_(program_.values.size()),
      env_(bound_->env()),
      trigger_(request.trigger) {}

int32_t Frame::root(int32_t value) const {
  while (program_.values[static_cast<size_t>(value)].alias_of >= 0) {
    value = program_.values[static_cast<size_t>(value)].alias_of;
  }
  return value;
}

Result<ValueType> Frame::type(int32_t value) const {
  ValueType type = program_.values[static_cast<size_t>(value)].type;
  for (Dim dim : type.shape) {
    if (env_.eval(dim) < 0) {
      return error(ErrorCode::kSymbolUnbound, "size ", dim.str(), " of '", program_.name,
                   "' has no number yet");
    }
  }
  type.shape = type.shape.bind(env_);
  return type;
}

Result<Storage> Frame::storage(int32_t value) {
  const int32_t at = root(value);
  const ProgramValue& info = program_.values[static_cast<size_t>(at)];
  if (info.param >= 0) return params_[static_cast<size_t>(info.param)];
  if (info.in_slot >= 0) return params_[static_cast<size_t>(info.in_slot)];
  if (dynamic_[static_cast<size_t>(at)]) return dynamic_[static_cast<size_t>(at)];
  const int64_t offset = bound_->offset(static_cast<size_t>(at));
  if (offset >= 0) {
    return Storage{instance_.memory[info.device].arena, static_cast<size_t>(offset)};
  }
  return error(ErrorCode::kInternal, "value ", at, " of '", program_.name, "' has no storage");
}

Result<Storage> Frame::storage_for_output(const Step& step, int32_t value) {
  const ProgramValue& info = program_.values[static_cast<size_t>(value)];
  Storage& own = dynamic_[static_cast<size_t>(value)];
  if (own || info.in_slot >= 0 || bound_->offset(static_cast<size_t>(value)) >= 0) {
    return storage(value);
  }
  ValueType known = info.type;
  auto bound = type(value);
  if (bound.ok()) {
    known = *bound;
  } else if (!step.inputs.empty()) {
    // The size depends on data this very step computes; it is at most that of its first input.
    TF_ASSIGN(ValueType first, type(step.inputs[0]));
    known.shape = Shape{first.shape.elements()};
  } else {
    return bound.status();
  }
  TF_ASSIGN(own, allocate_storage(info.device, known, program_.name.c_str()));
  return own;
}

void Frame::set_result(size_t index, Storage place, bool direct) {
  Place& result = results_[index];
  result.storage = std::move(place);
  result.direct = direct;
  if (result.written_there) {
    dynamic_[static_cast<size_t>(root(program_.results[index]))] = result.storage;
  }
}

Status Frame::prepare() {
  for (size_t i = 0; i < program_.results.size(); ++i) {
    const int32_t at = root(program_.results[i]);
    const ProgramValue& info = program_.values[static_cast<size_t>(at)];
    if (info.type.dtype == DType::kToken || info.param >= 0 || info.in_slot >= 0) continue;
    if (dynamic_[static_cast<size_t>(at)] || bound_->offset(static_cast<size_t>(at)) >= 0) {
      continue;
    }
    const Step& maker = program_.steps[static_cast<size_t>(info.first_step)];
    if (maker.kind != StepKind::kKernel && maker.kind != StepKind::kCopy) continue;
    auto known = type(at);
    if (!known.ok()) continue;  // data-dependent: allocated by its step
    Place& result = results_[i];
    if (result.storage && result.direct) {
      dynamic_[static_cast<size_t>(at)] = result.storage;
      result.written_there = true;
      continue;
    }
    TF_ASSIGN(dynamic_[static_cast<size_t>(at)],
              allocate_storage(info.device, *known, program_.name.c_str()));
  }
  if (bound_->checks() == 0) return {};
  const size_t bytes = bound_->checks() * sizeof(ErrorWord);
  for (Device device : bound_->devices()) {
    if (errors_.count(device) != 0) continue;
    TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
    TF_ASSIGN(BufferPtr buffer, backend->allocate(bytes, "error block"));
    TF_ASSIGN(Stream * stream, backend->stream(0));
    TF_RETURN_IF_ERROR(backend->fill_zero(*stream, buffer->data(), bytes));
    errors_[device] = Storage{std::move(buffer), 0};
  }
  return {};
}

std::vector<ErrorBlock> Frame::blocks(const std::map<Device, Storage>& storages) const {
  std::vector<ErrorBlock> blocks;
  for (const auto& [device, storage] : storages) blocks.push_back({storage, bound_->checks()});
  return blocks;
}

Status Frame::keep_errors() {
  if (!bound_->checks_before()) return {};
  const size_t bytes = bound_->checks() * sizeof(ErrorWord);
  for (const auto& [device, storage] : errors_) {
    Storage& kept = errors_before_[device];
    TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
    if (!kept) {
      TF_ASSIGN(BufferPtr buffer, backend->allocate(bytes, "error block"));
      kept = Storage{std::move(buffer), 0};
    }
    TF_ASSIGN(Stream * stream, backend->stream(0));
    TF_RETURN_IF_ERROR(backend->copy(*stream, kept.data(), storage.data(), bytes));
  }
  return {};
}

Status Frame::run_steps() {
  if (again_) TF_RETURN_IF_ERROR(keep_errors());
  int64_t before = times_ != nullptr ? Events::now_ns() : 0;
  for (size_t i = 0; i < program_.steps.size(); ++i) {
    const Step& step = program_.steps[i];
    TF_RETURN_IF_ERROR(run_step(i, step));
    if (!program_.size_reads.empty()) TF_RETURN_IF_ERROR(read_sizes(i));
    if (times_ == nullptr) continue;
    if (step.device.is_set()) {
      TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(step.device));
      TF_ASSIGN(Stream * stream, backend->stream(0));
      TF_RETURN_IF_ERROR(stream->synchronize());
    }
    const int64_t now = Events::now_ns();
    times_->push_back(now - before);
    before = now;
  }
  return {};
}

Status Frame::run_step(size_t i, const Step& step) {
  switch (step.kind) {
    case StepKind::kKernel:
      return run_kernel(i, step);
    case StepKind::kAlias:
      return {};
    case StepKind::kCopy:
      return run_copy(step);
    case StepKind::kHostCall:
      return run_host_call(i, step);
    default:
      break;
  }
  HostReader nothing_more;
  TF_RETURN_IF_ERROR(check_operands(i, &nothing_more));
  if (step.kind == StepKind::kIf) return run_if(step);
  return step.kind == StepKind::kWhile ? run_while(step) : run_call(step);
}

Status Frame::run_kernel(size_t index, const Step& step) {
  std::vector<void*> inputs, outputs;
  inputs.reserve(step.inputs.size());
  outputs.reserve(step.outputs.size());
  for (int32_t value : step.inputs) {
    if (program_.values[static_cast<size_t>(value)].type.dtype == DType::kToken) {
      inputs.push_back(nullptr);
      continue;
    }
    TF_ASSIGN(Storage at, storage(value));
    inputs.push_back(at.data());
  }
  std::vector<Storage> held;
  for (int32_t value : step.outputs) {
    TF_ASSIGN(Storage at, storage_for_output(step, value));
    outputs.push_back(at.data());
    held.push_back(std::move(at));
  }
  const Launch* launch = bound_->launch(index);
  std::unique_ptr<Launch> late;
  Storage late_workspace;
  TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(step.device));
  void* workspace = nullptr;
  if (launch == nullptr) {
    std::vector<ValueType> input_types, output_types;
    bound_types(program_, step, env_, &input_types, &output_types);
    TF_ASSIGN(late, bind_step(program_, step, env_, input_types, output_types));
    launch = late.get();
    if (launch->workspace_bytes() > 0) {
      TF_ASSIGN(BufferPtr buffer, backend->allocate(launch->workspace_bytes(), "workspace"));
      late_workspace = Storage{std::move(buffer), 0};
      workspace = late_workspace.data();
    }
  } else if (launch->workspace_bytes() > 0) {
    workspace = instance_.memory[step.device].workspace->data();
  }
  TF_ASSIGN(Stream * stream, backend->stream(0));
  ErrorWord* word = nullptr;
  const auto block = errors_.find(step.device);
  if (block != errors_.end() && bound_->check(index) >= 0) {
    word = static_cast<ErrorWord*>(block->second.data()) + bound_->check(index);
  }
  LaunchArgs args{*stream, inputs, outputs, workspace, word, static_cast<uint32_t>(index)};
  return launch->run(args);
}

Status Frame::read_sizes(size_t index) {
  for (const Program::SizeRead& read : program_.size_reads) {
    if (read.step != static_cast<int32_t>(index)) continue;
    TF_ASSIGN(Storage at, storage(read.value));
    TF_ASSIGN(ValueType count_type, type(read.value));
    TF_ASSIGN(HostArray host, to_host(count_type, at));
    int64_t count = 0;
    std::copy_n(host.bytes.data(), std::min(host.bytes.size(), sizeof count),
                reinterpret_cast<char*>(&count));
    env_.set(read.symbol, count);
  }
  return {};
}

Status Frame::run_copy(const Step& step) {
  TF_ASSIGN(Storage source, storage(step.inputs[0]));
  TF_ASSIGN(Storage target, storage_for_output(step, step.outputs[0]));
  TF_ASSIGN(ValueType copied, type(step.inputs[0]));
  return copy_value(copied, source, target);
}

Result<std::vector<Storage>> Frame::operands(const Step& step, size_t from) {
  std::vector<Storage> storages;
  for (size_t i = from; i < step.inputs.size(); ++i) {
    const int32_t value = step.inputs[i];
    if (program_.values[static_cast<size_t>(value)].type.dtype == DType::kToken) {
      storages.emplace_back();
      continue;
    }
    TF_ASSIGN(Storage at, storage(value));
    storages.push_back(std::move(at));
  }
  return storages;
}

Result<std::vector<Storage>> Frame::run_region(const Program& region, std::vector<Storage> params) {
  RunRequest request;
  // The region lives as long as the program that holds it.
  request.program = ProgramPtr(bound_->program_ptr(), &region);
  for (size_t p = 0; p < params.size(); ++p) {
    const ValueType& declared = region.values[static_cast<size_t>(region.params[p])].type;
    for (Dim dim : declared.shape) {
      for (int32_t symbol : free_symbols(dim)) {
        if (env_.has(symbol)) request.env.set(symbol, env_.values().at(symbol));
      }
    }
  }
  request.params = std::move(params);
  request.trigger = trigger_;
  TF_ASSIGN(RunOutcome outcome, executor_.run(request));
  if (outcome.run) {
    // A failed check inside a region stops the run: what follows depends on it.
    for (size_t i = 0; i < outcome.results.size(); ++i) {
      TF_RETURN_IF_ERROR(outcome.run->check(static_cast<int32_t>(i)));
    }
  }
  return std::move(outcome.results);
}

Status Frame::keep_results(const Step& step, std::vector<Storage> storages) {
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const int32_t value = step.outputs[i];
    if (program_.values[static_cast<size_t>(value)].type.dtype == DType::kToken) continue;
    Storage result = storages[i];
    const auto memory = instance_.memory.find(result.buffer->device());
    if (memory != instance_.memory.end() && result.buffer == memory->second.arena) {
      // A region handed an operand through; its place in the arena is reused after this step.
      TF_ASSIGN(ValueType kept, type(value));
      TF_ASSIGN(Storage own,
                allocate_storage(result.buffer->device(), kept, program_.name.c_str()));
      TF_RETURN_IF_ERROR(copy_value(kept, result, own));
      result = std::move(own);
    }
    dynamic_[static_cast<size_t>(value)] = std::move(result);
  }
  return {};
}

Result<bool> Frame::read_predicate(const Storage& at) {
  TF_ASSIGN(HostArray host, to_host(ValueType{DType::kBool, Shape{}}, at));
  return host.bytes[0] != 0;
}

Status Frame::run_if(const Step& step) {
  TF_ASSIGN(Storage pred, storage(step.inputs[0]));
  TF_ASSIGN(bool yes, read_predicate(pred));
  TF_ASSIGN(std::vector<Storage> params, operands(step, 1));
  TF_ASSIGN(std::vector<Storage> results,
            run_region(*step.regions[yes ? 0 : 1], std::move(params)));
  return keep_results(step, std::move(results));
}

Status Frame::run_while(const Step& step) {
  const Node& node = program_.graph->nodes[static_cast<size_t>(step.node)];
  const int64_t limit = node.attrs.integer("max_iterations");
  TF_ASSIGN(std::vector<Storage> vars, operands(step, 0));
  for (int64_t i = 0; limit < 0 || i < limit; ++i) {
    TF_ASSIGN(std::vector<Storage> test, run_region(*step.regions[0], vars));
    TF_ASSIGN(bool more, read_predicate(test[0]));
    if (!more) break;
    TF_ASSIGN(vars, run_region(*step.regions[1], std::move(vars)));
  }
  return keep_results(step, std::move(vars));
}

Status Frame::run_call(const Step& step) {
  TF_ASSIGN(std::vector<Storage> params, operands(step, 0));
  TF_ASSIGN(std::vector<Storage> results, run_region(*step.regions[0], std::move(params)));
  return keep_results(step, std::move(results));
}

Status Frame::check_operands(size_t index, HostReader* reader) {
  struct Asked {
    const std::set<int32_t>& checks;
    std::vector<size_t> reads;
  };
  const Needs &needs = bound_->needs(index), &before = bound_->needs_before(index);
  std::vector<Asked> asked{{needs.checks, {}}};
  std::set<int32_t> params = needs.params;
  if (!needs.checks.empty()) {
    for (const ErrorBlock& block : error_blocks()) {
      asked[0].reads.push_back(reader->add(block.storage, block.bytes()));
    }
  }
  if (again_) {
    params.insert(before.params.begin(), before.params.end());
    asked.push_back({before.checks, {}});
    for (const ErrorBlock& block : blocks(errors_before_)) {
      asked[1].reads.push_back(reader->add(block.storage, block.bytes()));
    }
  }
  UnreadErrors unread;
  std::vector<Run::Parent> parents;
  for (int32_t param : params) {
    if (static_cast<size_t>(param) >= parents_.size()) continue;
    const Run::Parent& parent = parents_[static_cast<size_t>(param)];
    if (parent.run == nullptr) continue;
    unread.add(parent.run, reader);
    parents.push_back(parent);
  }
  TF_RETURN_IF_ERROR(reader->run());
  unread.deliver(*reader);
  for (const Asked& each : asked) {
    std::vector<ErrorWord> failed;
    for (size_t read : each.reads) add_failures(*reader, read, bound_->checks(), &failed);
    for (const ErrorWord& word : failed) {
      const auto step = static_cast<int32_t>(word.step_plus_one) - 1;
      if (each.checks.count(step) != 0) return check_failure(program_, word);
    }
  }
  for (const Run::Parent& parent : parents) TF_RETURN_IF_ERROR(parent.run->check(parent.result));
  return {};
}

Result<std::vector<HostArray>> Frame::host_operands(size_t index, const Step& step) {
  HostReader reader;
  std::vector<HostArray> arrays;
  for (int32_t value : step.inputs) {
    TF_ASSIGN(ValueType known, type(value));
    if (known.dtype == DType::kToken) continue;
    TF_ASSIGN(Storage at, storage(value));
    if (known.dtype == DType::kString) {
      TF_ASSIGN(HostArray strings, to_host(known, at));
      arrays.push_back(std::move(strings));
      continue;
    }
    HostArray& array = arrays.emplace_back();
    array.dtype = known.dtype;
    array.sizes = known.shape.sizes();
    array.bytes.resize(storage_bytes(known));
    reader.add(std::move(at), array.bytes.size(), array.bytes.data());
  }
  TF_RETURN_IF_ERROR(check_operands(index, &reader));
  return arrays;
}

Status Frame::run_host_call(size_t index, const Step& step) {
  const Node& node = program_.graph->nodes[static_cast<size_t>(step.node)];
  TF_ASSIGN(const std::vector<HostArray> inputs, host_operands(index, step));
  std::vector<HostArray> outputs;
  // User code runs on a thread of its own: it may wait for anything but this run.
  Status status;
  std::thread worker([&] { status = executor_.host_handler()(node, inputs, &outputs); });
  worker.join();
  if (!status.ok()) return status.prefixed(place_of(node) + ": ");
  size_t next = 0;
  for (int32_t value : step.outputs) {
    const ProgramValue& info = program_.values[static_cast<size_t>(value)];
    if (info.type.dtype == DType::kToken) continue;
    TF_ASSIGN(ValueType expected, type(value));
    if (next >= outputs.size() || outputs[next].dtype != expected.dtype ||
        Shape::of(outputs[next].sizes) != expected.shape) {
      return error(ErrorCode::kHostCallFailed, place_of(node), ": the function returned ",
                   next < outputs.size()
                       ? ValueType{outputs[next].dtype, Shape::of(outputs[next].sizes)}.str()
                       : std::string("nothing"),
                   " as result ", next, " where ", expected.str(), " was declared");
    }
    Result<Storage> at = from_host_array(outputs[next], info.device);
    // Another number of elements than its own sizes say.
    if (!at.ok() && at.status().code() == ErrorCode::kShapeMismatch) {
      return error(ErrorCode::kHostCallFailed, place_of(node), ": result ", next,
                   " of the function: ", at.status().message());
    }
    TF_RETURN_IF_ERROR(at.status());
    ++next;
    dynamic_[static_cast<size_t>(value)] = std::move(*at);
  }
  return {};
}

bool Frame::is_assigned(int32_t param) const {
  const auto& slots = program_.result_slots;
  return std::find(slots.begin(), slots.end(), param) != slots.end();
}

bool Frame::stays(size_t index) const {
  const int32_t at = root(program_.results[index]);
  const ProgramValue& info = program_.values[static_cast<size_t>(at)];
  return info.in_slot >= 0 || (info.param >= 0 && !is_assigned(info.param));
}

Result<Storage> Frame::result(size_t index) {
  const int32_t at = root(program_.results[index]);
  const ProgramValue& info = program_.values[static_cast<size_t>(at)];
  if (info.type.dtype == DType::kToken) return Storage{};
  TF_ASSIGN(Storage here, storage(at));
  const bool written = info.in_slot >= 0 || (info.param >= 0 && is_assigned(info.param));
  if (!written && bound_->offset(static_cast<size_t>(at)) < 0) return here;
  // The bytes belong to a slot that this run writes, or to the arena: the output gets its own.
  TF_ASSIGN(ValueType known, type(at));
  TF_ASSIGN(Storage own, allocate_storage(info.device, known, program_.name.c_str()));
  TF_RETURN_IF_ERROR(copy_value(known, here, own));
  return own;
}

Status Frame::outputs(RunOutcome* outcome) {
  for (size_t i = 0; i < program_.results.size(); ++i) {
    ValueType type = program_.values[static_cast<size_t>(program_.results[i])].type;
    type.shape = type.shape.bind(env_);
    outcome->types.push_back(std::move(type));
    outcome->results.emplace_back();
    if (program_.result_slots[i] >= 0) continue;
    TF_ASSIGN(outcome->results.back(), result(i));
  }
  return {};
}

Status Frame::keep_results() {
  for (size_t i = 0; i < results_.size(); ++i) {
    const Place& result = results_[i];
    if (!result.storage || result.written_there) continue;
    const int32_t at = root(program_.results[i]);
    TF_ASSIGN(ValueType known, type(at));
    TF_ASSIGN(Storage here, storage(at));
    TF_RETURN_IF_ERROR(copy_value(known, here, result.storage));
  }
  return {};
}

Status Frame::finish_slots() {
  struct Move {
    ValueType type;
    Storage source, target;
  };
  std::vector<Move> moves;
  for (size_t i = 0; i < program_.results.size(); ++i) {
    const int32_t slot = program_.result_slots[i];
    if (slot < 0) continue;
    const int32_t at = root(program_.results[i]);
    const ProgramValue& info = program_.values[static_cast<size_t>(at)];
    if (info.in_slot == slot || info.param == slot) continue;
    TF_ASSIGN(ValueType known, type(at));
    TF_ASSIGN(Storage source, storage(at));
    if (info.param >= 0 || info.in_slot >= 0) {
      // Another variable's value, which may be overwritten below: two variables may swap.
      TF_ASSIGN(Storage staged, allocate_storage(info.device, known, "variable exchange"));
      TF_RETURN_IF_ERROR(copy_value(known, source, staged));
      source = std::move(staged);
    }
    moves.push_back({known, std::move(source), params_[static_cast<size_t>(slot)]});
  }
  for (const Move& move : moves) {
    TF_RETURN_IF_ERROR(copy_value(move.type, move.source, move.target));
  }
  again_ = true;
  return {};
}

}  // namespace tracefire
