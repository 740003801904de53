// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "tools/inject/analyse.h"
#include "tools/text/layout.h"

namespace tracefire::inject {

/// For people, on a terminal; the verdict in its colour where the look has colours.
std::string report_text(const Report& report, const text::Look& look = {});
/// "status 0 after 1.50 s; CPU time 1.20 s", or what else is known of the program's end.
std::string ending_words(const Session& session);
/// One document, schema/cli/prove.json.
Json report_json(const Report& report);
/// One HTML file without scripts and without anything from elsewhere: it shows the same offline and
/// in an untrusted notebook. Its time line is SVG.
std::string report_html(const Report& report);
/// Events of the windows and the time line as Perfetto and chrome://tracing read them
/// (JSON trace events), at most `most_events` of them.
std::string report_perfetto(const Report& report, size_t most_events = 500000);

/// The same events for TensorBoard's profile plugin: names of files, HOST.xplane.pb, and their
/// bytes, an XSpace in protobuf's wire format.
std::map<std::string, std::string> report_tensorboard(const Report& report,
                                                      size_t most_events = 500000);

/// What the proof is worth, for the end of each form.
inline constexpr char kWorth[] =
    "Evidence, not attestation: it shows what the driver reported to this user's own processes.";

}  // namespace tracefire::inject
