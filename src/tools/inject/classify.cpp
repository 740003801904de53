// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/classify.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>

#include "tools/inject/escape.h"
#include "tools/inject/record_format.h"

namespace tracefire::inject {
namespace {

bool holds_one_of(const std::string& text, const char* const* words) {
  for (; *words != nullptr; ++words) {
    if (text.find(*words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::string readable_kernel(std::string_view mangled) {
  // A name of full length was cut by the recorder and cannot be taken apart.
  if (mangled.rfind("_Z", 0) == 0 && mangled.size() < kMaxNameBytes &&
      mangled.find('\0') == std::string_view::npos) {
    int status = 0;
    const std::string name(mangled);
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    if (status == 0 && plain != nullptr) return printable(plain.get(), 2048);
  }
  return printable(mangled, 2048);
}

std::string short_kernel(std::string_view readable) {
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < readable.size(); ++i) {
    const char c = readable[i];
    if (c == '<') {
      ++depth;
    } else if (c == '>' && depth > 0) {
      --depth;
    } else if (depth == 0) {
      if (c == '(') {
        // "(anonymous namespace)" is part of a name, "(float*, int)" is not.
        if (readable.substr(i, 11) != "(anonymous ") break;
      }
      out += c;
    }
  }
  if (out.rfind("void ", 0) == 0) out.erase(0, 5);
  return out.empty() ? std::string(readable) : out;
}

KernelKind classify_kernel(std::string_view readable) {
  std::string lower(readable);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  KernelKind kind;
  for (int i = 0; i < table::kClassCount; ++i) {
    if (holds_one_of(lower, table::kClasses[i].words)) {
      kind.work = static_cast<KernelClass>(i);
      break;
    }
  }
  if (is_product(kind.work)) {
    if (holds_one_of(lower, table::kTensorCoreWords)) {
      kind.tensor_cores = TensorCores::kYes;
    } else if (holds_one_of(lower, table::kNoTensorCoreWords)) {
      kind.tensor_cores = TensorCores::kNo;
    }
  } else {
    kind.tensor_cores = TensorCores::kNo;
  }
  return kind;
}

}  // namespace tracefire::inject
