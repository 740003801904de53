// SPDX-License-Identifier: Apache-2.0
//
// The tables and rules: JSON files of src/tools/doctor/data, embedded while building, and newer
// ones given with --data.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire::doctor {

using Json = nlohmann::ordered_json;

/// The embedded files, by name without ".json"; generated.
struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};
const std::vector<EmbeddedFile>& embedded_files();

class Data {
 public:
  /// The embedded tables. Throws nothing: a broken embedded file cannot be built.
  Data();
  /// Puts newer tables over the embedded ones: objects merge by key, rules replace those of their
  /// kind. Returns what is wrong with the text, "" where nothing is.
  std::string merge(std::string_view text);

  const Json& versions() const { return versions_; }
  const Json& releases() const { return releases_; }
  const Json& gpus() const { return gpus_; }
  const Json& systems() const { return systems_; }
  const Json& logs() const { return logs_; }
  const Json& xids() const { return xids_; }
  const Json& diff() const { return diff_; }
  const Json& fix_notes() const { return fix_notes_; }
  const std::vector<Json>& rules() const { return rules_; }

  /// Entry of `table` ("tensorflow", "torch", "jax") for a version: the exact one, else its minor
  /// ("2.20" of "2.20.1"), else the nearest older minor; null before the first. `exact` tells
  /// which.
  const Json* release(std::string_view table, std::string_view version,
                      bool* exact = nullptr) const;
  /// Compute capability from a name or a PCI device number, "" where unknown.
  std::string capability_of_name(std::string_view gpu_name) const;
  std::string capability_of_pci(std::string_view device) const;
  /// "Blackwell" of "12.0".
  std::string arch(std::string_view capability) const;
  bool data_center(std::string_view gpu_name) const;
  /// Oldest driver for a CUDA version, "" where unknown.
  std::string driver_floor(std::string_view cuda, bool windows) const;

 private:
  Json versions_, releases_, gpus_, systems_, logs_, xids_, diff_, fix_notes_;
  std::vector<Json> rules_;
};

/// A text member, "" where it is absent or no text.
std::string text_of(const Json& object, std::string_view key);
std::vector<std::string> texts_of(const Json& object, std::string_view key);

}  // namespace tracefire::doctor
