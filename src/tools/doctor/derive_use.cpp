// SPDX-License-Identifier: Apache-2.0
//
// Facts of how a GPU was used while somebody looked.
#include <cmath>

#include "health_table.h"  // generated from schema/health.json
#include "tools/doctor/derive.h"
#include "tools/doctor/read/document.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

/// Not Data's ordered JSON, which takes long to find one key among very many.
using Report = nlohmann::json;

std::string text_of(const Report& object, const char* key) {
  auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

constexpr size_t kLeastLooks = 8;    // fewer tell of a moment, not of a run
constexpr double kBurst = 50;        // % that work of some size reaches
constexpr double kThin = 15;         // % that launches of tiny kernels stay below
constexpr double kJobMemory = 1000;  // MiB: a desktop holds less

double number_of(const SmiRow& row, const char* key) {
  auto it = row.find(key);
  if (it == row.end()) return -1;
  char* end = nullptr;
  const double value = std::strtod(it->second.c_str(), &end);
  return end == it->second.c_str() || !std::isfinite(value) ? -1 : value;
}

struct Looks {
  size_t count = 0, resting = 0;
  double sum = 0, most = 0, memory = 0;
};

std::string percent(double value) { return std::to_string(std::lround(value)); }

/// Samples of one GPU: bursts with rests between are input that comes too slowly; a low level that
/// never rises is work that is too small.
void sample_facts(const Machine& m, Facts* f) {
  std::map<std::string, Looks> gpus;
  for (const SmiRow& row : m.smi_samples) {
    const double load = number_of(row, "utilization.gpu");
    if (load < 0 || load > 100) continue;
    Looks& looks = gpus[row_gpu(row)];
    ++looks.count;
    looks.resting += load < 100 * health::kIdle;
    looks.sum += load;
    looks.most = std::max(looks.most, load);
    looks.memory = std::max(looks.memory, number_of(row, "memory.used"));
  }
  for (const auto& [gpu, looks] : gpus) {
    if (looks.count < kLeastLooks || looks.sum <= 0) continue;
    if (m.smi_apps.empty() && looks.memory < kJobMemory) continue;  // nobody uses it
    const double mean = looks.sum / static_cast<double>(looks.count);
    if (mean >= 100 * health::kBusyLow) continue;
    const std::string figures =
        "In " + std::to_string(looks.count) + " looks " + (gpu.empty() ? "the GPU" : "GPU " + gpu) +
        " was busy " + percent(mean) + " % on average and " + percent(looks.most) + " % at most";
    if (looks.most >= kBurst && looks.resting * 4 >= looks.count)
      f->set("use.input", "yes",
             figures + "; it rested in " + std::to_string(looks.resting) + " of them.");
    else if (looks.most <= kThin)
      f->set("use.tiny", "yes", figures + ".");
  }
  if ((f->has("use.input") || f->has("use.tiny")) && !m.smi_apps.empty())
    if (auto pid = m.smi_apps[0].find("pid"); pid != m.smi_apps[0].end())
      f->set("use.holder", pid->second, "Process " + pid->second + " uses the GPU.");
}

/// A report of prove or of the monitor names the cause itself.
void report_facts(const Machine& m, Facts* f) {
  if (too_deep(m.use_report)) return;
  const Report report = Report::parse(m.use_report, nullptr, false);
  if (!report.is_object()) return;
  const std::string schema = text_of(report, "schema");
  struct Named {
    std::string cause, text, where;
  };
  std::vector<Named> causes;
  auto add = [&](const Report& owner, const char* key, const std::string& where) {
    auto list = owner.find("causes");
    if (list == owner.end() || !list->is_array() || list->empty()) return;
    causes.push_back({text_of((*list)[0], key), text_of((*list)[0], "text"), where});
  };
  if (schema == "tracefire.prove/1") {
    auto busy = report.find("busy_share");
    // Where the GPU is busy all the same, its gaps are no fault.
    if (busy == report.end() || !busy->is_number() || busy->get<double>() < health::kBusyLow)
      add(report, "cause", "The proof of a run");
  } else if (schema.rfind("tracefire.monitor/", 0) == 0) {
    auto gpus = report.find("gpus");
    if (gpus == report.end() || !gpus->is_array()) return;
    for (const Report& gpu : *gpus) {
      auto state = gpu.is_object() ? gpu.find("health") : gpu.end();
      if (!gpu.is_object() || state == gpu.end() || !state->is_object()) continue;
      if (text_of(*state, "grade") == "low" || text_of(*state, "grade") == "idle")
        add(*state, "name", "The monitor");
    }
  }
  for (const Named& one : causes) {
    // The names of schema/prove.json, then those of schema/health.json.
    static const std::map<std::string, const char*> kFacts = {
        {"input", "use.input"},           {"launch", "use.tiny"},       {"device", "use.tiny"},
        {"cpu_fallback", "use.fallback"}, {"input_bound", "use.input"}, {"small_work", "use.tiny"},
        {"fallback", "use.fallback"}};
    auto fact = kFacts.find(one.cause);
    if (fact == kFacts.end()) continue;
    f->set(fact->second, "yes",
           one.where + " says: " + (one.text.empty() ? one.cause : one.text) + ".");
    f->set("use.reported", "yes");
  }
}

}  // namespace

void use_facts(const Machine& machine, Facts* facts) {
  sample_facts(machine, facts);
  if (!machine.use_report.empty()) report_facts(machine, facts);
}

}  // namespace tracefire::doctor
