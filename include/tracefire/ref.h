// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "tracefire/export.h"

namespace tracefire {

/// Throws kBadUsage: a Ref was used that holds nothing.
[[noreturn]] TRACEFIRE_API void empty_ref_used();

/// A shared part of a model, given as a new object or as a pointer: a Ref<Layer> takes `Dense(10)`
/// as well as `std::make_shared<Dense>(10)`, of which the caller keeps a hold. Copies share the
/// part.
template <class Base>
class Ref {
 public:
  Ref() = default;
  /// Only new objects: a named one would be copied, and the copy be trained.
  template <class T>
  requires(std::derived_from<T, Base> && !std::is_reference_v<T>)
      Ref(T&& object)  // NOLINT: a part is a reference to it
      : object_(std::make_shared<T>(std::move(object))) {}
  template <class T>
  requires std::derived_from<T, Base> Ref(std::shared_ptr<T> object)
      : object_(std::move(object)) {}  // NOLINT

  explicit operator bool() const { return object_ != nullptr; }
  /// Errors: kBadUsage where nothing is held.
  Base* operator->() const { return &**this; }
  Base& operator*() const {
    if (object_ == nullptr) empty_ref_used();
    return *object_;
  }
  const std::shared_ptr<Base>& shared() const { return object_; }

 private:
  std::shared_ptr<Base> object_;
};

}  // namespace tracefire
