// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/report.h"

#include <cstdio>

#include "tools/doctor/text.h"
#include "tools/report/page.h"
#include "tools/text/redact.h"

namespace tracefire::doctor {

namespace {

std::string percent(double confidence) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%.0f %%", confidence * 100);
  return buffer;
}

/// The first fault, null where there is none.
const Finding* cause_of(const Report& report) {
  return report.findings.empty() || !report.findings[0].fault() ? nullptr : &report.findings[0];
}

}  // namespace

int exit_code(const Report& report) {
  return report.verdict == "gpu-ok"         ? 0
         : report.verdict == "gpu-broken"   ? 1
         : report.verdict == "gpu-degraded" ? 3
                                            : 4;
}

Report made_safe(Report report) {
  auto safe = [](std::string& text) { text = printable(text::redacted(text), 4000); };
  safe(report.summary);
  for (std::string& line : report.inventory) safe(line);
  for (Finding& finding : report.findings) {
    safe(finding.kind);
    safe(finding.fix);
    for (std::string& line : finding.evidence) safe(line);
  }
  return report;
}

std::string as_text(const Report& report, const text::Look& look) {
  using text::Style;
  std::string out;
  auto line = [&](const std::string& text, const char* indent) {
    out += text::paragraph(text, look.width, indent);
  };
  // A fix has commands to copy: the terminal breaks it, which a copy does not contain.
  auto fix = [&](const std::string& text) { out += "  " + text + "\n"; };
  auto heading = [&](const std::string& text, const char* indent = "") {
    out += indent + text::styled(Style::kBold, text, look.color) + "\n";
  };
  out += text::styled(text::style_of(report.verdict), report.verdict, look.color) + "\n";
  line(report.summary, "");
  // Whoever is in trouble reads the first lines: the one cause, and what to do about it.
  const Finding* cause = cause_of(report);
  if (cause != nullptr && !cause->fix.empty()) {
    out += "\n";
    heading("Fix");
    fix(cause->fix);
  }
  bool notes = false;
  for (const Finding& finding : report.findings) {
    if (finding.fault()) {
      out += "\n" +
             text::styled(text::style_of(finding.severity), finding.severity + " " + finding.kind,
                          look.color) +
             " (" + percent(finding.confidence) + ")\n";
    } else {
      if (!notes) {
        out += "\n";
        heading("Notes");
      }
      notes = true;
      line(finding.kind, "  ");
    }
    for (const std::string& text : finding.evidence)
      out += text::paragraph(text, look.width, finding.fault() ? "  " : "    ", 2);
    if (!finding.fix.empty() && &finding != cause) {
      heading("Fix", "  ");
      fix(finding.fix);
    }
  }
  out += "\n";
  heading("What is here");
  for (const std::string& text : report.inventory)
    out += text::paragraph(text, look.width, "  ", 4);
  return out;
}

std::string as_json(const Report& report) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back({{"kind", finding.kind},
                        {"severity", finding.severity},
                        {"confidence", finding.confidence},
                        {"evidence", finding.evidence},
                        {"fix", finding.fix}});
  }
  Json out = {{"schema", "tracefire.doctor/1"},
              {"verdict", report.verdict},
              {"summary", report.summary},
              {"inventory", report.inventory},
              {"findings", findings}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string as_html(const Report& report) {
  const std::string verdict = html_text(report.verdict);
  std::string out = "<h1>tracefire doctor <span class=\"v " + verdict + "\">" + verdict +
                    "</span></h1>\n<p>" + html_text(report.summary) + "</p>\n";
  const Finding* cause = cause_of(report);
  if (cause != nullptr && !cause->fix.empty())
    out += "<h2>Fix</h2><code class=block>" + html_text(cause->fix) + "</code>\n";
  for (const Finding& finding : report.findings) {
    out += "<section class=\"" + html_text(finding.severity) + "\"><h2>" + html_text(finding.kind) +
           "</h2>\n<p>" + html_text(finding.severity) + ", " + percent(finding.confidence) +
           "</p>\n<ul>\n";
    for (const std::string& line : finding.evidence) out += "<li>" + html_text(line) + "</li>\n";
    out += "</ul>\n";
    if (!finding.fix.empty() && &finding != cause)
      out += "<p>Fix</p><code class=block>" + html_text(finding.fix) + "</code>\n";
    out += "</section>\n";
  }
  out += "<h2>What is here</h2>\n<ul>\n";
  for (const std::string& line : report.inventory) out += "<li>" + html_text(line) + "</li>\n";
  return report::page("tracefire doctor: " + report.verdict, out + "</ul>\n");
}

}  // namespace tracefire::doctor
