// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/data.h"

#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

std::string text_of(const Json& object, std::string_view key) {
  if (!object.is_object()) return "";
  auto it = object.find(std::string(key));
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::vector<std::string> texts_of(const Json& object, std::string_view key) {
  std::vector<std::string> out;
  if (!object.is_object()) return out;
  auto it = object.find(std::string(key));
  if (it == object.end()) return out;
  if (it->is_string()) out.push_back(it->get<std::string>());
  if (it->is_array())
    for (const Json& item : *it)
      if (item.is_string()) out.push_back(item.get<std::string>());
  return out;
}

Data::Data() {
  for (const EmbeddedFile& file : embedded_files()) {
    Json parsed = Json::parse(file.text);
    if (file.name == "versions")
      versions_ = std::move(parsed);
    else if (file.name == "releases")
      releases_ = std::move(parsed);
    else if (file.name == "gpus")
      gpus_ = std::move(parsed);
    else if (file.name == "systems")
      systems_ = std::move(parsed);
    else if (file.name == "logs")
      logs_ = std::move(parsed);
    else if (file.name == "xids")
      xids_ = std::move(parsed);
    else if (file.name == "diff")
      diff_ = std::move(parsed);
    else if (file.name == "fix_notes")
      fix_notes_ = std::move(parsed);
    else
      for (Json& rule : parsed.at("rules")) rules_.push_back(std::move(rule));
  }
}

std::string Data::merge(std::string_view text) {
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return "it is not valid JSON";
  if (!parsed.is_object()) return "it is not one JSON object";
  for (auto& [key, value] : parsed.items()) {
    if (key == "rules") {
      if (!value.is_array()) return "\"rules\" is not a list";
      for (Json& rule : value) {
        if (text_of(rule, "kind").empty()) return "a rule has no \"kind\"";
        std::string id = text_of(rule, "id").empty() ? text_of(rule, "kind") : text_of(rule, "id");
        std::erase_if(rules_, [&](const Json& old) {
          return (text_of(old, "id").empty() ? text_of(old, "kind") : text_of(old, "id")) == id;
        });
        rules_.push_back(rule);
      }
      continue;
    }
    Json* table = key == "versions"    ? &versions_
                  : key == "releases"  ? &releases_
                  : key == "gpus"      ? &gpus_
                  : key == "systems"   ? &systems_
                  : key == "logs"      ? &logs_
                  : key == "xids"      ? &xids_
                  : key == "diff"      ? &diff_
                  : key == "fix_notes" ? &fix_notes_
                                       : nullptr;
    if (table == nullptr)
      return "\"" + key +
             "\" is no table; tables are versions, releases, gpus, systems, logs, xids, diff, "
             "fix_notes, rules";
    if (value.is_object() && table->is_object())
      table->merge_patch(value);
    else
      *table = value;
  }
  return "";
}

const Json* Data::release(std::string_view table, std::string_view version, bool* exact) const {
  if (exact != nullptr) *exact = true;
  auto it = versions_.find(std::string(table));
  if (it == versions_.end() || !it->is_object() || version.empty()) return nullptr;
  std::string plain = public_part(version);
  for (int parts : {4, 3, 2}) {
    auto found = it->find(leading(plain, parts));
    if (found != it->end()) return &*found;
  }
  if (exact != nullptr) *exact = false;
  const Json* best = nullptr;
  std::string best_name;
  for (const auto& [name, entry] : it->items())
    if (compare_versions(name, plain) <= 0 &&
        (best == nullptr || compare_versions(name, best_name) > 0)) {
      best = &entry;
      best_name = name;
    }
  return best;
}

std::string Data::capability_of_name(std::string_view gpu_name) const {
  auto it = gpus_.find("names");
  if (it == gpus_.end() || !it->is_array()) return "";
  for (const Json& row : *it) {
    if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_string()) continue;
    std::string part = row[0].get<std::string>();
    size_t at = gpu_name.find(part);
    if (at == gpu_name.npos) continue;
    // "A10" is not in "A100", "T4" not in "T400".
    bool starts = at == 0 || gpu_name[at - 1] == ' ' || gpu_name[at - 1] == '-';
    char after = at + part.size() < gpu_name.size() ? gpu_name[at + part.size()] : ' ';
    bool ends = part.back() == ' ' || part == "RTX A" || part == "Quadro M" || part == "Quadro P" ||
                !(after >= '0' && after <= '9');
    if (starts && ends) return row[1].get<std::string>();
  }
  return "";
}

std::string Data::capability_of_pci(std::string_view device) const {
  std::string id = lower(trim(device));
  if (id.rfind("0x", 0) == 0) id = id.substr(2);
  auto it = gpus_.find("pci");
  if (id.size() != 4 || it == gpus_.end() || !it->is_array()) return "";
  for (const Json& row : *it)
    if (row.is_array() && row.size() == 3 && row[0].is_string() && row[1].is_string() &&
        row[2].is_string() && id >= row[0].get<std::string>() && id <= row[1].get<std::string>())
      return row[2].get<std::string>();
  return "";
}

std::string Data::arch(std::string_view capability) const {
  auto it = versions_.find("capability");
  if (it == versions_.end() || !it->is_object()) return "";
  auto entry = it->find(std::string(capability));
  if (entry == it->end()) return "";
  std::string name = text_of(*entry, "arch");
  return name.substr(0, name.find(' '));
}

bool Data::data_center(std::string_view gpu_name) const {
  for (const std::string& part : texts_of(gpus_, "data_center")) {
    size_t at = gpu_name.find(part);
    if (at == gpu_name.npos) continue;
    char after = at + part.size() < gpu_name.size() ? gpu_name[at + part.size()] : ' ';
    bool starts = at == 0 || gpu_name[at - 1] == ' ';
    if (starts && !(after >= '0' && after <= '9') && !contains(gpu_name, "GeForce") &&
        !contains(gpu_name, "RTX"))
      return true;
  }
  return false;
}

std::string Data::driver_floor(std::string_view cuda, bool windows) const {
  auto it = versions_.find("cuda");
  if (it == versions_.end() || !it->is_object() || cuda.empty()) return "";
  auto floors = it->find(windows ? "windows_floor" : "driver_floor");
  if (floors == it->end()) return "";
  std::string exact = text_of(*floors, leading(cuda, 2));
  return exact.empty() ? text_of(*floors, leading(cuda, 1)) : exact;
}

}  // namespace tracefire::doctor
