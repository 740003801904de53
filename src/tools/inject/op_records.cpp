// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/op_records.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/inject/escape.h"
#include "tools/inject/field.h"
#include "tools/inject/record_format.h"

namespace tracefire::inject {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRows = 8192;
constexpr size_t kMostPrograms = 1024;
constexpr size_t kMostSymbols = 64;
constexpr size_t kMostParts = 4096;
constexpr char kSchema[] = "tracefire.ops/1";

std::string text(const Field& from, const char* name) {
  return printable(from.value(name, std::string()), 512);
}

/// Figures that are beyond all bounds are 0.
double figure(const Field& from, const char* name) {
  const double value = from.value(name, 0.0);
  return std::isfinite(value) && value > 0 && value < 1e30 ? value : 0;
}

uint64_t count(const Field& from, const char* name) {
  const double value = figure(from, name);
  return value < 9e18 ? static_cast<uint64_t>(from.json().value(name, uint64_t{0})) : 0;
}

int64_t rank(const Field& from, const char* name) {
  const auto value = from.value(name, int64_t{-1});
  return value >= 0 && value < 1 << 24 ? value : -1;
}

OpRow read_row(const Field& from) {
  OpRow row;
  row.op = text(from, "op");
  row.layer = text(from, "layer");
  row.location = text(from, "location");
  row.device = text(from, "device");
  row.kernel = text(from, "kernel");
  row.library = text(from, "library");
  row.placement = text(from, "placement");
  row.reason = text(from, "reason");
  row.runs = count(from, "runs");
  row.flops = figure(from, "flops");
  row.bytes = figure(from, "bytes");
  each(from["symbols"], kMostSymbols, [&](const Field& symbol) {
    row.symbols.push_back(symbol.as<std::string>().substr(0, 1024));
  });
  if (from.has("launches"))  // records of earlier releases have none
    each(from["launches"], row.symbols.size(), [&](const Field& told) {
      row.launches.push_back(std::min(told.as<uint64_t>(), row.runs));
    });
  return row;
}

OpRecords read(const Field& json) {
  OpRecords r;
  r.pid = static_cast<uint32_t>(count(json, "pid"));
  r.parent = static_cast<uint32_t>(count(json, "parent"));
  r.host = text(json, "host").substr(0, 128);
  r.rank = rank(json, "rank");
  r.ranks = rank(json, "ranks");
  r.local_rank = rank(json, "local_rank");
  r.begun_ns = count(json, "begun_ns");
  r.wall_ns = count(json, "wall_ns");
  r.cpu_ns = count(json, "cpu_ns");
  r.clean_end = json.value("clean_end", false);
  r.verdict = text(json, "verdict");
  r.gpu_flops = figure(json, "gpu_flops");
  r.cpu_flops = figure(json, "cpu_flops");
  r.cpu_by_choice_flops = figure(json, "cpu_by_choice_flops");
  r.graph_launches = count(json, "graph_launches");
  r.waits = count(json, "synchronizations");
  r.bytes_in = count(json, "copied_to_device_bytes");
  r.bytes_out = count(json, "copied_to_host_bytes");
  r.crowded = json.value("crowded", false);
  each(json["programs"], kMostPrograms, [&](const Field& p) {
    r.programs.push_back({text(p, "name"), count(p, "runs"), count(p, "graph_launches"),
                          static_cast<int64_t>(count(p, "host_ns")),
                          static_cast<int64_t>(count(p, "longest_ns"))});
  });
  r.part_ns = count(json, "part_ns");
  each(json["parts"], kMostParts, [&](const Field& part) {
    r.parts.push_back(static_cast<uint64_t>(std::max<int64_t>(part.as<int64_t>(), 0)));
  });
  each(json["rows"], kMostRows, [&](const Field& row) { r.rows.push_back(read_row(row)); });
  return r;
}

/// Whether the check sum that ends the text is right. Texts of earlier releases have none.
bool whole(std::string_view bytes) {
  constexpr std::string_view kCheck = ",\"check\":\"";
  const size_t at = bytes.rfind(kCheck);
  if (at == std::string_view::npos) return true;
  char sum[16];
  std::snprintf(sum, sizeof(sum), "%08x\"}", crc32(bytes.data(), at));
  return bytes.substr(at + kCheck.size(), 10) == sum;
}

}  // namespace

Result<OpRecords> parse_op_records(std::string_view bytes) {
  if (bytes.size() > kMaxOpBytes) {
    return error(ErrorCode::kBadFile, "operations take ", bytes.size(), " bytes; expected at most ",
                 kMaxOpBytes);
  }
  if (!whole(bytes)) return error(ErrorCode::kBadFile, "damaged: wrong check sum");
  try {
    const Json json = Json::parse(bytes);
    if (!json.is_object() || json.value("schema", "") != kSchema) {
      return error(ErrorCode::kBadFile, "no ", kSchema);
    }
    OpRecords records = read(Field(json));
    if (records.verdict != "on-gpu" && records.verdict != "partly-on-gpu" &&
        records.verdict != "on-cpu") {
      return error(ErrorCode::kBadFile, "its verdict is none: ", records.verdict);
    }
    return records;
  } catch (const FieldProblem& problem) {
    return error(ErrorCode::kBadFile, "damaged: ", printable(problem.what(), 200));
  } catch (const nlohmann::json::exception& problem) {
    return error(ErrorCode::kBadFile, "damaged: ", printable(problem.what(), 200));
  }
}

}  // namespace tracefire::inject
