// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emit/loop_kernels.h"

#include <algorithm>

#include "backends/cuda/emit/device_library.h"

namespace tracefire::cuda {
namespace {

/// Kernels of one compilation: beyond this, a second compilation beside it is faster.
constexpr size_t kKernelsTogether = 24;

}  // namespace

Status LoopKernels::prepare(const std::vector<Wanted>& wanted) {
  std::vector<Job> jobs;
  std::vector<std::shared_future<Answer>> answers;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Wanted& one : wanted) {
      const std::string key = one.program->key() + "|" + one.variant.str();
      auto kept = kernels_.find(key);
      if (kept == kernels_.end()) {
        jobs.push_back({loop_source(*one.program, one.variant), {}});
        kept = kernels_.emplace(key, jobs.back().promise.get_future().share()).first;
      }
      answers.push_back(kept->second);
    }
  }
  std::vector<std::future<void>> others;
  while (jobs.size() > kKernelsTogether) {
    std::vector<Job> part(std::make_move_iterator(jobs.end() - kKernelsTogether),
                          std::make_move_iterator(jobs.end()));
    jobs.resize(jobs.size() - kKernelsTogether);
    others.push_back(std::async(std::launch::async, [this, part = std::move(part)]() mutable {
      compile(std::move(part));
    }));
  }
  compile(std::move(jobs));
  others.clear();  // waits
  for (const std::shared_future<Answer>& answer : answers) {
    if (!answer.get().ok()) return answer.get().status();
  }
  return {};
}

bool LoopKernels::has(const LoopProgram& program, const LoopVariant& variant) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return kernels_.count(program.key() + "|" + variant.str()) != 0;
}

Result<LoopKernel> LoopKernels::find(const LoopProgram& program, const LoopVariant& variant) {
  const std::string key = program.key() + "|" + variant.str();
  std::shared_future<Answer> answer;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto kept = kernels_.find(key);
    if (kept != kernels_.end()) answer = kept->second;
  }
  if (!answer.valid()) {
    TF_RETURN_IF_ERROR(prepare({{&program, variant}}));
    const std::lock_guard<std::mutex> lock(mutex_);
    answer = kernels_.at(key);
  }
  return answer.get();
}

void LoopKernels::compile(std::vector<Job> jobs) const {
  if (jobs.empty()) return;
  std::string text(device_library());
  for (const Job& job : jobs) text += job.source.text;
  const std::string name =
      jobs.size() == 1 ? jobs[0].source.name
                       : std::to_string(jobs.size()) + " loops, " + jobs[0].source.name + " first";
  // As in the ready kernels and on the CPU, a * b + c stays two operations.
  const auto load = [&]() -> Result<std::shared_ptr<Module>> {
    TF_ASSIGN(const Image image, compiler_.compile(name, text, {"--fmad=false"}));
    return Module::load(context_, image, true);
  };
  const Result<std::shared_ptr<Module>> module = load();
  for (Job& job : jobs) {
    if (!module.ok()) {
      job.promise.set_value(module.status());
      continue;
    }
    Result<Function> function = (*module)->function(job.source.name);
    if (!function.ok()) {
      job.promise.set_value(function.status());
    } else {
      job.promise.set_value(
          LoopKernel{*function, std::move(job.source.index_axes), job.source.reports});
    }
  }
}

}  // namespace tracefire::cuda
