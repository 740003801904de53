// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
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
/// observe any tensor. Work happens when a value is observed, or earlier; errors of the work are
/// thrown then, naming the operation and its source line. All members but defined() throw
/// kBadAttribute where the tensor is undefined (default-constructed or moved from).
class TRACEFIRE_API Tensor {
 public:
  Tensor() = default;
  /// For the library itself, which knows what a cell is.
  explicit Tensor(std::shared_ptr<trace::Cell> cell) : cell_(std::move(cell)) {}

  /// Copies an array of `sizes` from host memory, row-major, at the call. `device` unset: that of
  /// the DeviceScope, else the default. Errors: kBadAttribute where `data` is null but there are
  /// elements; kShapeMismatch for sizes that cannot be; kDTypeMismatch for types without bytes
  /// (strings); kUnknownDevice; kOutOfMemory.
  static Tensor from_host(const void* data, DType dtype, const std::vector<int64_t>& sizes,
                          Device device = {});
  /// A string array (host only), row-major; as many as `sizes` say (kShapeMismatch).
  static Tensor from_strings(std::vector<std::string> values, const std::vector<int64_t>& sizes);
  /// Row-major `values`, as many as `sizes` say (kShapeMismatch); of their C++ type's dtype.
  template <class T>
  static Tensor of(const std::vector<T>& values, const std::vector<int64_t>& sizes,
                   Device device = {}) {
    check_count(values.size(), sizes);
    if constexpr (std::is_same_v<T, bool>) {  // whose vector holds bits
      const std::vector<char> bytes(values.begin(), values.end());
      return from_host(bytes.data(), DType::kBool, sizes, device);
    } else {
      return from_host(values.data(), DTypeOf<T>::value, sizes, device);
    }
  }
  /// A vector: [number of values].
  template <class T>
  static Tensor of(const std::vector<T>& values) {
    return of(values, std::vector<int64_t>{static_cast<int64_t>(values.size())});
  }
  /// A rank-0 tensor of the C++ type's dtype: scalar(1.0) is float64, scalar(1.0f) float32.
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
  /// Copies the value to host memory; `bytes` must be its size (kShapeMismatch), and `target` a
  /// place (kBadAttribute).
  void copy_to(void* target, size_t bytes) const;
  /// All elements, row-major. T must be the dtype's own type (kDTypeMismatch): nothing is
  /// converted.
  template <class T>
  std::vector<T> values() const {
    expect_dtype(DTypeOf<T>::value);
    if constexpr (std::is_same_v<T, bool>) {  // whose vector holds bits
      const auto bytes = host_vector<char>();
      return std::vector<bool>(bytes.begin(), bytes.end());
    } else {
      return host_vector<T>();
    }
  }
  /// The only element; kShapeMismatch where there are more, kDTypeMismatch as for values().
  template <class T>
  T item() const {
    expect_dtype(DTypeOf<T>::value);
    T out;
    copy_to(&out, sizeof out);
    return out;
  }
  /// All elements of a string tensor, row-major.
  std::vector<std::string> strings() const;
  /// Elements of the value; observes it where the shape depends on data.
  size_t element_count() const;
  /// Sizes as numbers; observes the value where the shape depends on data.
  std::vector<int64_t> sizes() const;

  /// For the library itself.
  const std::shared_ptr<trace::Cell>& cell() const { return cell_; }

 private:
  static void check_count(size_t count, const std::vector<int64_t>& sizes);
  void expect_dtype(DType dtype) const;
  [[noreturn]] static void no_host_memory(size_t bytes);
  template <class T>
  std::vector<T> host_vector() const {
    const size_t count = element_count();
    std::vector<T> out;
    try {
      out.resize(count);
    } catch (const std::exception&) {
      no_host_memory(count * sizeof(T));
    }
    copy_to(out.data(), count * sizeof(T));
    return out;
  }
  std::shared_ptr<trace::Cell> cell_;
};

using Tensors = std::vector<Tensor>;

/// What is known of a tensor before it has a value.
struct TensorSpec {
  DType dtype = DType::kInvalid;
  Shape shape;
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
/// waits once for each device instead of once for each tensor. On a device that the host addresses
/// nothing is copied: a variable that would be written while a value is held moves to new memory
/// instead. Copies share one block of memory, which lives as long as any of them. Throws the first
/// failure on the way to any value; kDTypeMismatch for strings.
TRACEFIRE_API std::vector<HostValue> fetch(std::span<const Tensor> tensors);

/// Storage that can be assigned to: a slot. A handle: copies are the same variable. Reads and
/// assigns take effect in program order, also inside functions, whose programs receive and return
/// the slots they touch. All members but defined() and slot() throw kBadUsage where the variable is
/// undefined (default-constructed or moved from).
class TRACEFIRE_API Variable {
 public:
  Variable() = default;
  /// Dtype, shape and device are those of `initial` for good. Throws kValueInTrace where that is a
  /// value of a function being traced (see InitScope), kSymbolUnbound where its shape depends on
  /// data.
  explicit Variable(const Tensor& initial, std::string name = "", bool trainable = true);
  explicit Variable(std::shared_ptr<trace::Slot> slot) : slot_(std::move(slot)) {}

  bool defined() const { return slot_ != nullptr; }
  /// The value at this point of the program, which later assignments do not change.
  Tensor read() const;
  /// `value` must have the variable's dtype and shape (kDTypeMismatch, kShapeMismatch).
  void assign(const Tensor& value) const;
  const std::string& name() const;
  bool trainable() const;
  DType dtype() const;
  const Shape& shape() const;
  Device device() const;
  /// Whether both are the same storage.
  friend bool operator==(const Variable& a, const Variable& b) { return a.slot_ == b.slot_; }
  friend bool operator!=(const Variable& a, const Variable& b) { return !(a == b); }
  const std::shared_ptr<trace::Slot>& slot() const { return slot_; }

 private:
  std::shared_ptr<trace::Slot> slot_;
};

}  // namespace tracefire
