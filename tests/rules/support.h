// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/event.h"
#include "tracefire/apply.h"
#include "tracefire/config.h"
#include "tracefire/control.h"
#include "tracefire/error.h"
#include "tracefire/function.h"
#include "tracefire/grad.h"
#include "tracefire/observe.h"
#include "tracefire/tensor.h"

namespace tracefire::testing {

/// First result of an operation by name.
inline Tensor op(std::string_view name, const Tensors& inputs, const AttrList& attrs = {}) {
  return apply_op(name, inputs, attrs)[0];
}

inline Tensor vec(const std::vector<float>& values) {
  return Tensor::of(values, {static_cast<int64_t>(values.size())});
}

inline Tensor sum(const Tensor& x) {
  std::vector<int64_t> axes;
  for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  return op("reduce_sum", {x}, {{"axes", axes}, {"keepdims", false}});
}

/// Code of the error that `work` throws, or 0; its text goes to `text`.
template <class Work>
int error_of(Work work, std::string* text = nullptr) {
  try {
    work();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.number();
  }
  return 0;
}

/// Programs that run while it lives.
class Programs {
 public:
  Programs() {
    Events::Subscriber subscriber;
    subscriber.run = [this](const RunEvent& event) { ids_.insert(event.program->id); };
    id_ = Events::instance().subscribe(std::move(subscriber));
  }
  ~Programs() { Events::instance().unsubscribe(id_); }
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  size_t count() const { return ids_.size(); }

 private:
  std::set<uint64_t> ids_;
  int id_;
};

/// What is written to stderr from here until end().
class StderrText {
 public:
  StderrText() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    if (file_ != nullptr) dup2(fileno(file_), STDERR_FILENO);
  }
  ~StderrText() { end(); }
  StderrText(const StderrText&) = delete;
  StderrText& operator=(const StderrText&) = delete;
  std::string end() {
    if (file_ == nullptr) return "";
    std::fflush(stderr);
    dup2(before_, STDERR_FILENO);
    close(before_);
    std::string text;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    std::fclose(file_);
    file_ = nullptr;
    return text;
  }

 private:
  std::FILE* file_;
  int before_;
};

}  // namespace tracefire::testing
