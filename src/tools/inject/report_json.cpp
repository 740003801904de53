// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/escape.h"
#include "tools/inject/report.h"

namespace tracefire::inject {
namespace {

Json causes_json(const std::vector<CauseFigure>& causes) {
  Json list = Json::array();
  for (const CauseFigure& c : causes) {
    const table::CauseRow& row = table::kCauses[static_cast<size_t>(c.cause)];
    list.push_back({{"cause", row.name},
                    {"health", row.health},
                    {"share", c.share},
                    {"gaps", c.gaps},
                    {"mean_gap_us", c.mean_gap_us},
                    {"text", row.text}});
  }
  return list;
}

const char* tensor_word(const KernelKind& kind) {
  if (!is_product(kind.work)) return "not-applicable";
  return kind.tensor_cores == TensorCores::kYes  ? "yes"
         : kind.tensor_cores == TensorCores::kNo ? "no"
                                                 : "unknown";
}

Json gpu_json(const GpuUse& use) {
  return {{"device", use.device},
          {"name", use.name},
          {"uuid", use.uuid},
          {"busy_ns", use.busy},
          {"compute_ns", use.compute},
          {"communication_ns", use.communication},
          {"copies_ns", use.copies},
          {"steady_ns", use.steady_last - use.steady_first},
          {"busy_share", use.busy_share},
          {"compute_share", use.compute_share},
          {"copy_share", use.copy_share},
          {"cpu_cores_busy", use.cores_busy},
          {"cpu_cores_outside_cuda", use.cores_own},
          {"memory_peak", use.memory_peak},
          {"windows", {{"covered_ns", use.gaps.covered}, {"steady", use.gaps.steady}}},
          {"causes", causes_json(use.causes)}};
}

const char* state_word(TraceState state) {
  switch (state) {
    case TraceState::kTracing:
      return "traced";
    case TraceState::kTaken:
      return "cupti-taken";
    case TraceState::kNoCupti:
      return "no-cupti";
    case TraceState::kOldCupti:
      return "cupti-too-old";
    case TraceState::kNoCuda:
      return "no-cuda";
    case TraceState::kFailed:
      break;
  }
  return "failed";
}

Json processes_json(const Report& r) {
  Json list = Json::array();
  for (const ProcessFigure& p : r.processes) {
    Json gpus = Json::array();
    for (const GpuUse& use : p.gpus) gpus.push_back(gpu_json(use));
    const ProcessRecord& record = *p.record;
    list.push_back({{"title", p.title},
                    {"pid", record.pid},
                    {"parent", record.parent},
                    {"rank", record.rank},
                    {"ranks", record.ranks},
                    {"command", p.command},
                    {"verdict", place_name(p.place)},
                    {"tracing", state_word(record.state)},
                    {"graphs_by_node", record.by_node},
                    {"clean_end", record.clean_end},
                    {"kernels", p.kernels},
                    {"kernel_ns", p.kernel_ns},
                    {"cpu_ns", p.cpu_ns},
                    {"records_dropped", record.dropped},
                    {"gpus", gpus}});
  }
  return list;
}

Json kernels_json(const Report& r) {
  Json list = Json::array();
  for (const KernelFigure& k : r.kernels) {
    list.push_back({{"name", k.name},
                    {"class", table::kClasses[static_cast<size_t>(k.kind.work)].name},
                    {"tensor_cores", tensor_word(k.kind)},
                    {"count", k.count},
                    {"total_ns", k.total},
                    {"least_ns", k.least},
                    {"most_ns", k.most},
                    {"share", k.share},
                    {"mean_blocks", k.blocks}});
  }
  return list;
}

Json classes_json(const Report& r) {
  Json list = Json::array();
  for (const ClassFigure& c : r.classes) {
    list.push_back({{"class", table::kClasses[static_cast<size_t>(c.work)].name},
                    {"count", c.count},
                    {"total_ns", c.total},
                    {"share", c.share},
                    {"on_tensor_cores_ns", c.on_tensor_cores},
                    {"not_on_tensor_cores_ns", c.not_on_tensor_cores}});
  }
  return list;
}

Json copies_json(const Report& r) {
  Json list = Json::array();
  for (const CopyFigure& c : r.copies) {
    list.push_back({{"way", c.way},
                    {"count", c.count},
                    {"bytes", c.bytes},
                    {"total_ns", c.total},
                    {"gigabytes_per_second", c.gigabytes_per_second}});
  }
  return list;
}

Json operations_json(const Report& r) {
  if (!r.ops.found) return nullptr;
  Json ops = Json::array();
  for (const OpFigure& o : r.ops.ops) {
    ops.push_back({{"op", o.op},
                   {"layer", o.layer},
                   {"location", o.location},
                   {"device", o.device},
                   {"kernel", o.kernel},
                   {"library", o.library},
                   {"placement", o.placement},
                   {"reason", o.reason},
                   {"runs", o.runs},
                   {"flops", o.flops},
                   {"bytes", o.bytes},
                   {"work_share", o.work_share},
                   {"kernel_ns", o.kernel_ns < 0 ? Json(nullptr) : Json(o.kernel_ns)},
                   {"divided", o.estimated}});
  }
  Json programs = Json::array();
  for (const ProgramFigure& p : r.ops.programs) {
    programs.push_back({{"name", p.name},
                        {"runs", p.runs},
                        {"graph_launches", p.graph_launches},
                        {"host_ns", p.host_ns},
                        {"longest_ns", p.longest_ns}});
  }
  return {{"gpu_flops", r.ops.gpu_flops},
          {"cpu_flops", r.ops.cpu_flops},
          {"cpu_by_choice_flops", r.ops.cpu_by_choice_flops},
          {"joined_kernel_ns", r.ops.joined_ns},
          {"kernels_compared", r.ops.kernels_compared},
          {"kernels_agreeing", r.ops.kernels_agreeing},
          {"operations", ops},
          {"programs", programs}};
}

}  // namespace

Json report_json(const Report& r) {
  const Session& s = *r.session;
  static constexpr const char* kEvidence[] = {"traced", "recorded", "sampled", "none"};
  Json advice = Json::array();
  for (const Advice& a : r.advice) {
    advice.push_back({{"finding", a.finding}, {"actions", a.actions}});
  }
  Json json = {{"schema", "tracefire.prove/1"},
               {"worth", kWorth},
               {"verdict", place_name(r.place)},
               {"evidence", kEvidence[static_cast<size_t>(r.evidence)]},
               {"reason", r.reason},
               {"complete", r.complete()},
               {"incomplete", r.incomplete},
               {"command", s.command},
               {"host", s.host},
               {"exit_status", s.ending.known ? Json(s.ending.status) : Json()},
               {"signal", s.ending.signal},
               {"wall_ns", s.wall_ns},
               {"cpu_ns", s.ending.user_ns + s.ending.system_ns},
               {"gpu_problem", s.gpu_problem}};
  json["busy_share"] = r.has_steady ? Json(r.busy_share) : Json(nullptr);
  json["busy_share_whole_run"] = r.has_steady ? Json(r.whole_share) : Json(nullptr);
  json["grade"] =
      r.has_steady ? Json(health::kGradeNames[static_cast<size_t>(r.grade)]) : Json(nullptr);
  json["causes"] = causes_json(r.causes);
  json["kernel_count"] = r.kernel_count;
  json["kernel_ns"] = r.kernel_ns;
  json["launches"] = r.launches;
  json["classes"] = classes_json(r);
  json["kernels"] = kernels_json(r);
  json["copies"] = copies_json(r);
  json["tracefire"] = operations_json(r);
  json["memory_peak"] = r.memory_peak;
  json["nvml_memory_peak"] = r.nvml_memory_peak < 0 ? Json(nullptr) : Json(r.nvml_memory_peak);
  json["throttling"] = r.throttling;
  Json others = Json::array();
  for (const OtherSeen& o : s.others) {
    others.push_back({{"pid", o.pid},
                      {"gpu", o.gpu},
                      {"name", printable(o.name, 64)},
                      {"memory_peak", o.memory_peak < 0 ? Json(nullptr) : Json(o.memory_peak)}});
  }
  json["other_processes"] = others;
  Json tree = Json::array();
  for (const ProcessSeen& p : s.processes) {
    if (!p.on_gpu) continue;
    tree.push_back(
        {{"pid", p.pid}, {"name", printable(p.name, 64)}, {"memory_peak", p.gpu_memory_peak}});
  }
  json["nvml_processes"] = tree;
  json["processes"] = processes_json(r);
  json["advice"] = advice;
  json["notes"] = r.notes;
  json["environment"] = s.environment;
  json["manifest"] = s.manifest;
  return json;
}

}  // namespace tracefire::inject
