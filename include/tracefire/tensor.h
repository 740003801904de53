// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tracefire/device.h"
#include "tracefire/dtype.h"
#include "tracefire/export.h"
#include "tracefire/shape.h"

namespace tracefire {

namespace trace {
struct Cell;
struct Slot;
}  // namespace trace

/// A lazy, immutable array: a handle on a value of the trace. Cheap to copy; any thread may
/// observe any tensor. Work happens when a value is observed (or earlier, see design of firing);
/// errors of the work are thrown then, naming the operation and its source line.
class TRACEFIRE_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<trace::Cell> cell) : cell_(std::move(cell)) {}

  /// Copies `bytes of dtype x sizes` from host memory at the call. `device` unset: the default.
  static Tensor from_host(const void* data, DType dtype, const std::vector<int64_t>& sizes,
                          Device device = {});
  /// A string array (host only), row-major.
  static Tensor from_strings(std::vector<std::string> values, const std::vector<int64_t>& sizes);
  template <class T>
  static Tensor of(const std::vector<T>& values, const std::vector<int64_t>& sizes,
                   Device device = {}) {
    check_count(values.size(), sizes);
    return from_host(values.data(), DTypeOf<T>::value, sizes, device);
  }
  /// A rank-0 tensor.
  template <class T>
  static Tensor scalar(T value, Device device = {}) {
    return from_host(&value, DTypeOf<T>::value, {}, device);
  }

  bool defined() const { return cell_ != nullptr; }
  DType dtype() const;
  const Shape& shape() const;
  int rank() const { return shape().rank(); }
  /// Fixed when the tensor was traced; known without waiting for its value.
  Device device() const;
  /// The same value on another device; strings stay on the host. Throws kUnknownDevice where
  /// `device` is not set, and when the value is observed where there is no such device.
  Tensor to(Device device) const;

  /// Waits for the value and throws what went wrong in computing it.
  void wait() const;
  /// Copies the value to host memory; `bytes` must be its size.
  void copy_to(void* target, size_t bytes) const;
  template <class T>
  std::vector<T> values() const {
    expect_dtype(DTypeOf<T>::value);
    std::vector<T> out(element_count());
    copy_to(out.data(), out.size() * sizeof(T));
    return out;
  }
  /// The only element.
  template <class T>
  T item() const {
    expect_dtype(DTypeOf<T>::value);
    T out;
    copy_to(&out, sizeof out);
    return out;
  }
  std::vector<std::string> strings() const;
  /// Elements of the value; observes it where the shape depends on data.
  size_t element_count() const;
  /// Sizes as numbers; observes the value where the shape depends on data.
  std::vector<int64_t> sizes() const;

  /// The value's own bytes on a host-addressable device, kept alive (and unchanged) by `owner`;
  /// null data elsewhere, without a wait. A variable that would be written meanwhile moves to new
  /// memory instead.
  struct View {
    const void* data = nullptr;
    std::shared_ptr<void> owner;
  };
  View view() const;

  const std::shared_ptr<trace::Cell>& cell() const { return cell_; }

 private:
  static void check_count(size_t count, const std::vector<int64_t>& sizes);
  void expect_dtype(DType dtype) const;
  std::shared_ptr<trace::Cell> cell_;
};

/// A value in host memory: dense, row-major, valid and unchanged while `owner` lives.
struct HostValue {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> sizes;
  const void* data = nullptr;  ///< null where `bytes` is 0
  size_t bytes = 0;
  std::shared_ptr<void> owner;
  bool copied = false;  ///< false: the tensor's own memory, on a device that the host addresses
};

/// The values of several tensors, read together: what is pending fires as one piece, and the host
/// waits once for each device instead of once for each tensor. Small values share one block of
/// memory, which lives as long as any of them. Throws the first failure on the way to any value;
/// kDTypeMismatch for strings.
TRACEFIRE_API std::vector<HostValue> fetch(std::span<const Tensor> tensors);

/// Storage that can be assigned to: a slot. Reads and assigns take effect in program order, also
/// inside functions, whose programs receive and return the slots they touch.
class TRACEFIRE_API Variable {
 public:
  Variable() = default;
  explicit Variable(const Tensor& initial, std::string name = "", bool trainable = true);

  explicit Variable(std::shared_ptr<trace::Slot> slot) : slot_(std::move(slot)) {}

  bool defined() const { return slot_ != nullptr; }
  Tensor read() const;
  /// `value` must have the variable's dtype and shape (kDTypeMismatch, kShapeMismatch).
  void assign(const Tensor& value) const;
  const std::string& name() const;
  bool trainable() const;
  DType dtype() const;
  const Shape& shape() const;
  Device device() const;
  const std::shared_ptr<trace::Slot>& slot() const { return slot_; }

 private:
  std::shared_ptr<trace::Slot> slot_;
};

}  // namespace tracefire
