// SPDX-License-Identifier: Apache-2.0
// What the tests of whole models on the null device share.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/null/null_device.h"
#include "core/compile/compile.h"
#include "core/graph/builder.h"
#include "core/runtime/executor.h"
#include "core/runtime/transfer.h"

namespace tracefire {

inline Device null_device() { return {register_device_kind("NULL"), 0}; }

inline NullDevice& null_backend() {
  return *static_cast<NullDevice*>(Backends::instance().find(null_device()).value());
}

inline CompileOptions on_null() {
  CompileOptions options;
  options.device = null_device();
  return options;
}

/// Operations that the null device has no kernel for, while this lives.
class Masked {
 public:
  explicit Masked(std::vector<std::string> ops) {
    Backends::instance().mask(null_device().kind, std::move(ops));
  }
  ~Masked() { Backends::instance().mask(null_device().kind, {}); }
  Masked(const Masked&) = delete;
  Masked& operator=(const Masked&) = delete;
};

/// A variable.
inline Value slot(Builder* b, DType dtype, Shape shape, const char* name) {
  return b->param({dtype, std::move(shape)}, name, ParamKind::kSlot);
}

/// Steps of an operation, those of regions included.
inline int count(const Program& program, const char* op) {
  const OpId id = OpTable::instance().id(op);
  int found = 0;
  for (const Step& step : program.steps) {
    found += program.graph->nodes[static_cast<size_t>(step.node)].op == id;
    for (const ProgramPtr& region : step.regions) found += count(*region, op);
  }
  return found;
}

/// Steps of a kind, those of regions included.
inline int count(const Program& program, StepKind kind) {
  int found = 0;
  for (const Step& step : program.steps) {
    found += step.kind == kind;
    for (const ProgramPtr& region : step.regions) found += count(*region, kind);
  }
  return found;
}

/// Steps that run because of `placement`, those of regions included.
inline int count(const Program& program, Placement placement) {
  int found = 0;
  for (const Step& step : program.steps) {
    found += step.placement == placement;
    for (const ProgramPtr& region : step.regions) found += count(*region, placement);
  }
  return found;
}

inline int kernels(const Program& program) { return count(program, StepKind::kKernel); }

/// A run of `program` over storage on the null device.
inline RunRequest request_of(const ProgramPtr& program, const Graph& graph, DimEnv env = {}) {
  RunRequest request;
  request.program = program;
  request.env = std::move(env);
  for (const Param& param : graph.params) {
    ValueType type = param.type;
    type.shape = type.shape.bind(request.env);
    request.params.push_back(allocate_storage(null_device(), type, "test").value());
  }
  return request;
}

}  // namespace tracefire
