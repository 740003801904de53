// SPDX-License-Identifier: Apache-2.0
// DLPack in both directions: https://dmlc.github.io/dlpack/latest/c_api.html (version 1).
#include <memory>

#include "python/bindings/arrays.h"

namespace tracefire::python {
namespace {

// The C structures of the exchange format; their layout is its ABI.
struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};
constexpr int32_t kCpu = 1, kCudaHost = 3;
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;

struct TypeCode {
  DType dtype;
  uint8_t code;
  uint8_t bits;
};
constexpr TypeCode kTypeCodes[] = {
    {DType::kI8, 0, 8},      {DType::kI16, 0, 16},   {DType::kI32, 0, 32},
    {DType::kI64, 0, 64},    {DType::kU8, 1, 8},     {DType::kU16, 1, 16},
    {DType::kU32, 1, 32},    {DType::kU64, 1, 64},   {DType::kF16, 2, 16},
    {DType::kF32, 2, 32},    {DType::kF64, 2, 64},   {DType::kBF16, 4, 16},
    {DType::kC64, 5, 64},    {DType::kC128, 5, 128}, {DType::kBool, 6, 8},
    {DType::kF8E4M3, 10, 8}, {DType::kF8E5M2, 12, 8},
};

std::optional<DLDataType> type_code(DType dtype) {
  for (const TypeCode& row : kTypeCodes) {
    if (row.dtype == dtype) return DLDataType{row.code, row.bits, 1};
  }
  return std::nullopt;
}

DType dtype_of_code(const DLDataType& type) {
  for (const TypeCode& row : kTypeCodes) {
    if (type.lanes == 1 && row.code == type.code && row.bits == type.bits) return row.dtype;
  }
  return DType::kInvalid;
}

void read_tensor(const DLTensor& from, std::shared_ptr<void> keeper, HostElements* out) {
  if (from.device.device_type != kCpu && from.device.device_type != kCudaHost) {
    fail(ErrorCode::kUnknownDevice,
         "an array offers memory of DLPack device (" + std::to_string(from.device.device_type) +
             ", " + std::to_string(from.device.device_id) +
             "); expected host memory. Copy it to the CPU first");
  }
  out->dtype = dtype_of_code(from.dtype);
  if (out->dtype == DType::kInvalid) {
    fail(ErrorCode::kDTypeMismatch, "an array has DLPack type code " +
                                        std::to_string(from.dtype.code) + " with " +
                                        std::to_string(from.dtype.bits) +
                                        " bits, which no element type is. Convert it first");
  }
  const auto rank = static_cast<size_t>(from.ndim);
  out->sizes.assign(from.shape, from.shape + rank);
  const auto element = static_cast<int64_t>(dtype_size(out->dtype));
  std::vector<int64_t> strides(rank);
  int64_t dense = element;
  bool is_dense = true;
  for (size_t i = rank; i-- > 0;) {
    strides[i] = from.strides == nullptr ? dense : from.strides[i] * element;
    is_dense = is_dense && (out->sizes[i] == 1 || strides[i] == dense);
    dense *= out->sizes[i];
  }
  const char* data = static_cast<const char*>(from.data) + from.byte_offset;
  if (is_dense) {
    out->data = data;
    out->borrowed = std::move(keeper);
  } else {
    out->owned = gather_elements(data, static_cast<size_t>(element), out->sizes, strides);
    out->data = out->owned.data();
  }
}

template <class Managed>
void read_capsule(PyObject* capsule, const char* name, const char* used, HostElements* out) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr || PyCapsule_SetName(capsule, used) != 0) throw nb::python_error();
  std::shared_ptr<void> keeper(managed, [](void* pointer) {
    auto* owned = static_cast<Managed*>(pointer);
    if (owned->deleter != nullptr) owned->deleter(owned);
  });
  read_tensor(managed->dl_tensor, keeper, out);
}

/// What an exported capsule keeps: the structure a consumer sees, and what it points into.
template <class Managed>
struct Exported {
  Managed managed = {};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::shared_ptr<void> owner;
};

template <class Managed>
void destroy_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // consumed: the consumer calls the deleter
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

void destroy_versioned(PyObject* capsule) {
  destroy_capsule<DLManagedTensorVersioned>(capsule, "dltensor_versioned");
}
void destroy_plain(PyObject* capsule) {
  destroy_capsule<DLManagedTensor>(capsule, "dltensor");
}

template <class Managed>
Managed* export_view(HostValue view, DLDataType type) {
  auto* exported = new Exported<Managed>;
  exported->shape = view.sizes;
  exported->strides.resize(view.sizes.size());
  int64_t stride = 1;
  for (size_t i = view.sizes.size(); i-- > 0; stride *= view.sizes[i]) {
    exported->strides[i] = stride;
  }
  exported->owner = std::move(view.owner);
  exported->managed.dl_tensor = {const_cast<void*>(view.data),
                                 {kCpu, 0},
                                 static_cast<int32_t>(view.sizes.size()),
                                 type,
                                 exported->shape.data(),
                                 exported->strides.data(),
                                 0};
  exported->managed.manager_ctx = exported;
  exported->managed.deleter = [](Managed* managed) {
    delete static_cast<Exported<Managed>*>(managed->manager_ctx);
  };
  return &exported->managed;
}

[[noreturn]] void refuse(const std::string& text) { throw nb::buffer_error(text.c_str()); }

}  // namespace

bool read_dlpack(nb::handle value, HostElements* out) {
  if (!nb::hasattr(value, "__dlpack__")) return false;
  if (nb::hasattr(value, "__array_interface__")) return false;  // NumPy: objects, text, dates
  nb::object capsule = value.attr("__dlpack__")();
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    read_capsule<DLManagedTensorVersioned>(capsule.ptr(), "dltensor_versioned",
                                           "used_dltensor_versioned", out);
  } else {
    read_capsule<DLManagedTensor>(capsule.ptr(), "dltensor", "used_dltensor", out);
  }
  return true;
}

nb::object to_dlpack(const Tensor& tensor, nb::handle max_version, nb::handle device,
                     nb::handle copy) {
  const std::string what = describe(nb::cast(tensor));
  if (!device.is_none() && nb::cast<int>(nb::borrow(device)[0]) != kCpu) {
    refuse(what + " was asked for DLPack memory of another device than the CPU. Use numpy() or "
                  "dl_device=(1, 0)");
  }
  const auto type = type_code(tensor.dtype());
  if (!type) refuse(what + " has an element type that DLPack does not know");
  HostValue view = fetch_value(tensor);
  const bool versioned = !max_version.is_none() && nb::cast<int>(nb::borrow(max_version)[0]) >= 1;
  // Without versions a capsule cannot say that it must not be written to, so it gets a copy.
  const bool copies = !copy.is_none() ? nb::cast<bool>(copy) : !versioned;
  if (!copies && (view.copied || !versioned)) {
    refuse(what + " on " + tensor.device().str() +
           " was asked for DLPack memory without a copy; expected memory of the host and a consumer "
           "of DLPack 1.0, which knows read-only memory. Use copy=None");
  }
  if (copies && !view.copied) {
    std::shared_ptr<char[]> memory(new char[view.bytes]);
    std::copy_n(static_cast<const char*>(view.data), view.bytes, memory.get());
    view.data = memory.get();
    view.owner = memory;
    view.copied = true;
  }
  const bool copied = view.copied;
  if (versioned) {
    auto* managed = export_view<DLManagedTensorVersioned>(std::move(view), *type);
    managed->major = 1;
    managed->minor = 0;
    managed->flags = copied ? kIsCopied : kReadOnly;
    return nb::steal(PyCapsule_New(managed, "dltensor_versioned", destroy_versioned));
  }
  auto* managed = export_view<DLManagedTensor>(std::move(view), *type);
  return nb::steal(PyCapsule_New(managed, "dltensor", destroy_plain));
}

}  // namespace tracefire::python
