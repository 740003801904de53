// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/report tools/inject
//
// libFuzzer entry: whatever the bytes, they give records within their bounds, and the reports of
// what was read can be made. The input is a snapshot's body, a window chunk's payload, and a
// session or the executor's records.
#include <cstring>
#include <string>
#include <string_view>

#include "tools/inject/report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire;
  using namespace tracefire::inject;
  if (size < 4) return 0;
  const size_t body_size = std::min<size_t>(data[0] + 256u * data[1], size - 4);
  const std::string_view body(reinterpret_cast<const char*>(data) + 4, body_size);
  const std::string_view rest(body.data() + body_size, size - 4 - body_size);
  // Right headers, so that the search goes on behind the check sums.
  std::string snapshot(kSnapshotMagic, sizeof(kSnapshotMagic));
  const auto append = [](std::string& to, uint32_t value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  append(snapshot, kFormatVersion);
  append(snapshot, static_cast<uint32_t>(body.size()));
  append(snapshot, crc32(body.data(), body.size()));
  snapshot += body;
  Result<ProcessRecord> record = parse_snapshot(snapshot);
  if (!record.ok()) {
    if (record.status().code() != ErrorCode::kBadFile) std::abort();
    record = ProcessRecord{};
  }
  std::string chunk;
  append(chunk, kChunkMagic);
  append(chunk, static_cast<uint32_t>(rest.size()));
  append(chunk, 0);
  append(chunk, data[2]);
  append(chunk, data[3]);
  append(chunk, 0);
  chunk += rest;
  const uint32_t sum = crc32(chunk.data() + kChunkSummed, chunk.size() - kChunkSummed);
  std::memcpy(chunk.data() + 8, &sum, sizeof(sum));
  parse_windows(chunk, *record);
  Session session;
  if (Result<Session> read = read_session(rest); read.ok()) session = *read;
  if (Result<OpRecords> ops = parse_op_records(rest); ops.ok()) {
    record->ops = std::make_shared<const OpRecords>(std::move(*ops));
  }
  const std::vector<ProcessRecord> records = {*record};
  const Report report = analyse(session, records, {});
  report_text(report);
  report_html(report);
  report_perfetto(report, 1000);
  report_tensorboard(report, 1000);
  report_json(report).dump(-1, ' ', false, Json::error_handler_t::replace);
  return 0;
}
