// SPDX-License-Identifier: Apache-2.0
#include "tracefire/device.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/base/parse_device.h"
#include "core/base/status.h"

namespace tracefire {
namespace {

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

/// Names of the kinds; the index is the number. Never destroyed: devices print until the end.
struct Kinds {
  std::mutex mutex;
  std::vector<std::string> names = {"CPU", "GPU"};
};

Kinds& kinds() {
  static Kinds* instance = new Kinds;
  return *instance;
}

Status unknown(std::string_view text, const std::string& why) {
  std::string known;
  {
    Kinds& k = kinds();
    std::lock_guard<std::mutex> lock(k.mutex);
    for (const std::string& name : k.names) known += (known.empty() ? "" : ", ") + name;
  }
  return error(ErrorCode::kUnknownDevice, "the device '", text.substr(0, 100),
               "' is not known: ", why, ". Known kinds are ", known,
               "; write a device as /GPU:0, GPU:0 or gpu.");
}

/// Takes TensorFlow's "/job:localhost/replica:0/task:0" away where it names this process.
Status strip_task(std::string_view text, std::string_view* rest) {
  *rest = text;
  if (text.empty()) return {};
  while (!rest->empty()) {
    std::string_view part = *rest;
    if (part.front() == '/') part.remove_prefix(1);
    std::string_view head = part.substr(0, part.find('/'));
    std::string key = upper(head.substr(0, head.find(':')));
    if (key != "JOB" && key != "REPLICA" && key != "TASK") return {};
    std::string value = head.size() > key.size() ? upper(head.substr(key.size() + 1)) : "";
    if (value != (key == "JOB" ? "LOCALHOST" : "0")) {
      return unknown(text, "it names another process (" + std::string(head) + ")");
    }
    *rest = part.substr(head.size());
  }
  return unknown(text, "it names a process but no device");
}

Result<Device> parse(std::string_view text) {
  std::string_view rest;
  TF_RETURN_IF_ERROR(strip_task(text, &rest));
  if (!rest.empty() && rest.front() == '/') rest.remove_prefix(1);
  if (upper(rest.substr(0, 7)) == "DEVICE:") rest.remove_prefix(7);
  size_t colon = rest.find(':');
  std::string name = upper(rest.substr(0, colon));
  if (name.empty()) return unknown(text, "it names no kind");
  int index = 0;
  if (colon != std::string_view::npos) {
    std::string_view digits = rest.substr(colon + 1);
    bool good =
        !digits.empty() && digits.size() <= 3 &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!good) return unknown(text, "what follows the kind is not a number from 0 to 255");
    for (char c : digits) index = index * 10 + (c - '0');
    if (index > 255) return unknown(text, "its index is larger than 255");
  }
  Kinds& k = kinds();
  {
    std::lock_guard<std::mutex> lock(k.mutex);
    for (size_t i = 0; i < k.names.size(); ++i) {
      if (k.names[i] == name) {
        return Device{static_cast<uint8_t>(i), static_cast<uint8_t>(index)};
      }
    }
  }
  return unknown(text, "no kind has the name '" + name + "'");
}

}  // namespace

std::string Device::str() const {
  if (!is_set()) return "";
  return "/" + device_kind_name(kind) + ":" + std::to_string(index);
}

Device parse_device(std::string_view text) { return parse(text).value(); }

Result<Device> try_parse_device(std::string_view text) { return parse(text); }

uint8_t register_device_kind(std::string_view name) {
  std::string wanted = upper(name);
  Kinds& k = kinds();
  std::lock_guard<std::mutex> lock(k.mutex);
  for (size_t i = 0; i < k.names.size(); ++i) {
    if (k.names[i] == wanted) return static_cast<uint8_t>(i);
  }
  bool good = !wanted.empty() && wanted.size() <= 32 && k.names.size() < Device::kUnset &&
              std::all_of(wanted.begin(), wanted.end(), [](char c) {
                return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
              });
  if (!good) {
    error(ErrorCode::kUnknownDevice, "a device kind cannot be called '", name.substr(0, 100),
          "'. A name has 1 to 32 letters, digits and underscores, and there are at most 255 kinds.")
        .throw_if_error();
  }
  k.names.push_back(wanted);
  return static_cast<uint8_t>(k.names.size() - 1);
}

std::string device_kind_name(uint8_t kind) {
  Kinds& k = kinds();
  std::lock_guard<std::mutex> lock(k.mutex);
  return kind < k.names.size() ? k.names[kind] : "DEVICE" + std::to_string(kind);
}

}  // namespace tracefire
