// SPDX-License-Identifier: Apache-2.0
// The page of `tracefire check`: text, JSON, HTML.
#include <cstdio>

#include "tools/cli/check.h"
#include "tools/cli/edition.h"
#include "tools/inject/escape.h"
#include "tools/report/page.h"

namespace tracefire::cli {
namespace {

std::string text_of(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string()
             ? json[key].get<std::string>()
             : "";
}

const Json& list_of(const Json& json, const char* key) {
  static const Json none = Json::array();
  return json.is_object() && json.contains(key) && json[key].is_array() ? json[key] : none;
}

Json number_or_null(double value) { return value < 0 ? Json() : Json(value); }
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] -= 'a' - 'A';
  return text;
}

std::string sentence(const std::string& text) {
  return capital(text) + (text.empty() || text.ends_with('.') ? "" : ".");
}

/// How the program ended; check's own status is another one where --require was missed.
std::string end_of(const CheckResult& result) {
  int64_t status = result.exit_status;
  if (result.proof.is_object() && result.proof.contains("exit_status") &&
      result.proof["exit_status"].is_number_integer()) {
    status = result.proof["exit_status"].get<int64_t>();
  }
  std::string text = "It ended with status " + std::to_string(status) + ".";
  if (status != result.exit_status) text += " The verdict that was required was missed.";
  return text;
}

bool is_fault(const Json& finding) {
  const std::string severity = text_of(finding, "severity");
  return severity == "error" || severity == "warning";
}

/// "GPU 0 NVIDIA H200: 83 % busy over 60 s; at most 12.0 of 139.8 GiB, 540 W, 61 C".
std::string words_of(const WatchedGpu& gpu) {
  std::string out =
      "GPU " + std::to_string(gpu.index) + " " + gpu.name + " (" + gpu.grade + "): " + gpu.words;
  char text[96];
  if (gpu.memory_used >= 0) {
    constexpr double kGib = 1 << 30;
    std::snprintf(text, sizeof text, "; at most %.1f of %.1f GiB", gpu.memory_used / kGib,
                  gpu.memory_total / kGib);
    out += text;
  }
  if (gpu.power >= 0) {
    std::snprintf(text, sizeof text, ", %.0f W", gpu.power);
    out += text;
  }
  if (gpu.temperature >= 0) {
    std::snprintf(text, sizeof text, ", %.0f C", gpu.temperature);
    out += text;
  }
  return out + ".";
}

Json product_json(const MatmulTrial& trial) {
  const bool failed = !trial.problem.empty();
  return {{"framework", trial.framework},
          {"device", text_or_null(trial.device)},
          {"placement", text_or_null(trial.placement)},
          {"flops_per_second", failed ? Json() : Json(trial.flops_per_second)},
          {"peak_flops_per_second", trial.peak > 0 ? Json(trial.peak) : Json()},
          {"grade", trial.grade()},
          {"problem", text_or_null(trial.problem)}};
}

Json gpu_json(const WatchedGpu& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"uuid", text_or_null(gpu.uuid)},
          {"busy_share", number_or_null(gpu.busy)},
          {"grade", gpu.grade},
          {"words", gpu.words},
          {"memory_used_bytes", number_or_null(gpu.memory_used)},
          {"memory_total_bytes", number_or_null(gpu.memory_total)},
          {"power_watts", number_or_null(gpu.power)},
          {"temperature_celsius", number_or_null(gpu.temperature)},
          {"looks", gpu.busy_points.size()}};
}

/// Lines under headings, wrapped; a line's indent is kept where it is broken.
class TextPage {
 public:
  explicit TextPage(text::Look look) : look_(look) {
    constexpr int kWidthOfFiles = 80;
    if (look_.width == 0) look_.width = kWidthOfFiles;
  }
  /// "1  See: gpu-ok", the verdict in its colour.
  void heading(int number, const std::string& text, const std::string& verdict = "") {
    if (!out_.empty()) out_ += "\n";
    std::string before = std::to_string(number) + "  ";
    for (const std::string& part :
         text::wrapped(text + (verdict.empty() ? "" : ":"), std::max(look_.width - 3, 16))) {
      out_ += before + text::styled(text::Style::kBold, part, look_.color);
      before = "\n   ";
    }
    const std::string word = printable(verdict);
    out_ +=
        (word.empty() ? "" : " ") + text::styled(text::style_of(word), word, look_.color) + "\n";
  }
  void finding(const std::string& severity, const std::string& kind) {
    out_ += "   " +
            text::styled(text::style_of(severity), printable(severity + " " + kind), look_.color) +
            "\n";
  }
  /// `sign` stands before the first line alone.
  void line(size_t indent, const std::string& text, const std::string& sign = "") {
    out_ += text::paragraph(printable(text, 4096), look_.width, std::string(indent, ' ') + sign);
  }
  /// Has commands to copy: the terminal breaks it, which a copy does not contain.
  void commands(size_t indent, const std::string& text) {
    out_ += std::string(indent, ' ') + printable(text, 4096) + "\n";
  }
  std::string take() { return std::move(out_); }

 private:
  text::Look look_;
  std::string out_;
};

void program_text(const CheckResult& result, TextPage& page) {
  if (result.command.empty()) {
    page.heading(3, "Monitor");
    page.line(3, "No program was given: tracefire check -- PROGRAM runs and watches one.");
    return;
  }
  const std::string verdict = text_of(result.proof, "verdict");
  page.heading(3, "Monitor", verdict.empty() ? "no proof" : verdict);
  page.line(3, joined(result.command));
  page.line(3, end_of(result));
  if (const std::string reason = text_of(result.proof, "reason"); !reason.empty()) {
    page.line(3, sentence(reason));
  }
  for (const Json& why : list_of(result.proof, "incomplete")) {
    if (why.is_string())
      page.line(3, "The evidence is incomplete: " + why.get<std::string>() + ".");
  }
  if (const std::string problem = text_of(result.proof, "gpu_problem"); !problem.empty()) {
    page.line(3, "No GPU: " + problem);
  }
  for (const WatchedGpu& gpu : result.gpus) page.line(3, words_of(gpu));
  if (!result.monitor_problem.empty()) {
    page.line(3, "GPUs were not watched: " + result.monitor_problem);
  }
  const Json& advice = list_of(result.proof, "advice");
  if (!advice.empty()) page.line(3, "What to do next:");
  for (const Json& one : advice) {
    page.line(5, capital(text_of(one, "finding")), "- ");
    for (const Json& action : list_of(one, "actions")) {
      if (action.is_string()) page.line(7, action.get<std::string>());
    }
  }
}

// ---- HTML ----

using inject::html_text;

std::string mark(const std::string& word) {
  return "<span class=\"v " + html_text(word) + "\">" + html_text(word) + "</span>";
}

std::string see_html(const Json& doctor) {
  std::string out = "<h2>1 &nbsp;See " + mark(text_of(doctor, "verdict")) + "</h2>\n<p>" +
                    html_text(text_of(doctor, "summary"), 4096) + "</p>\n";
  for (const Json& finding : list_of(doctor, "findings")) {
    if (!is_fault(finding)) continue;
    out += "<p><b>" + html_text(text_of(finding, "kind")) + "</b></p><ul>";
    for (const Json& line : list_of(finding, "evidence")) {
      if (line.is_string()) out += "<li>" + html_text(line.get<std::string>(), 4096) + "</li>";
    }
    out += "</ul>";
    const std::string fix = text_of(finding, "fix");
    if (!fix.empty()) {
      out += "<p>Fix</p><code class=block>" + html_text(fix, 4096) + "</code>";
    }
    out += "\n";
  }
  out += "<details><summary>What is here</summary><ul>\n";
  for (const Json& line : list_of(doctor, "inventory")) {
    if (line.is_string()) out += "<li>" + html_text(line.get<std::string>(), 4096) + "</li>\n";
  }
  return out + "</ul></details>\n";
}

std::string observe_html(const std::vector<MatmulTrial>& products) {
  std::string out = "<h2>2 &nbsp;Observe: a matrix product of 5000 x 5000</h2>\n";
  if (products.empty()) return out + "<p>Left out.</p>\n";
  out += "<table>\n";
  for (const MatmulTrial& trial : products) {
    out += "<tr><td>" + mark(trial.grade()) + "</td><td>" + html_text(trial.words(), 4096);
    if (!trial.placement.empty()) out += "<br><code>" + html_text(trial.placement) + "</code>";
    out += "</td></tr>\n";
  }
  return out + "</table>\n";
}

/// The busy share over the run, as an area.
std::string busy_svg(const WatchedGpu& gpu) {
  if (gpu.busy_points.size() < 2) return "";
  constexpr double kWidth = 1000, kHeight = 80;
  const double step = kWidth / static_cast<double>(gpu.busy_points.size() - 1);
  std::string points = "0,80";
  char text[64];
  for (size_t i = 0; i < gpu.busy_points.size(); ++i) {
    const double busy = std::clamp(gpu.busy_points[i], 0.0, 1.0);
    std::snprintf(text, sizeof text, " %.1f,%.1f", step * static_cast<double>(i),
                  kHeight * (1 - busy));
    points += text;
  }
  return "<svg viewBox=\"0 0 1000 80\" role=\"img\"><title>" +
         html_text("busy share of GPU " + std::to_string(gpu.index) + " while the program ran") +
         "</title><rect width=\"1000\" height=\"80\" fill=\"#8b949e22\"/><polygon points=\"" +
         points +
         " 1000,80\" fill=\"#1a7f37\"/></svg><p class=\"axis\"><span>start</span>"
         "<span>busy share of GPU " +
         std::to_string(gpu.index) +
         ", 0 to 100 %</span>"
         "<span>end</span></p>";
}

std::string program_html(const CheckResult& result) {
  if (result.command.empty()) return "<h2>3 &nbsp;Monitor</h2>\n<p>No program was given.</p>\n";
  const std::string verdict = text_of(result.proof, "verdict");
  std::string out = "<h2>3 &nbsp;Monitor " + mark(verdict.empty() ? "no proof" : verdict) +
                    "</h2>\n<p><code>" + html_text(joined(result.command), 4096) +
                    "</code></p>\n<p>" + end_of(result) + "</p>\n";
  const std::string reason = text_of(result.proof, "reason");
  if (!reason.empty()) out += "<p>" + html_text(sentence(reason), 4096) + "</p>\n";
  for (const Json& why : list_of(result.proof, "incomplete")) {
    if (why.is_string()) {
      out +=
          "<p>The evidence is incomplete: " + html_text(why.get<std::string>(), 4096) + ".</p>\n";
    }
  }
  const std::string problem = text_of(result.proof, "gpu_problem");
  if (!problem.empty()) out += "<p>No GPU: " + html_text(problem, 4096) + "</p>\n";
  for (const WatchedGpu& gpu : result.gpus) {
    out += "<p>" + mark(gpu.grade) + " " + html_text(words_of(gpu), 4096) + "</p>" + busy_svg(gpu) +
           "\n";
  }
  if (!result.monitor_problem.empty()) {
    out += "<p>GPUs were not watched: " + html_text(result.monitor_problem, 4096) + "</p>\n";
  }
  const Json& advice = list_of(result.proof, "advice");
  if (!advice.empty()) out += "<h2>What to do next</h2>\n<ol>\n";
  for (const Json& one : advice) {
    out += "<li>" + html_text(capital(text_of(one, "finding")), 4096) + "<ul>";
    for (const Json& action : list_of(one, "actions")) {
      if (action.is_string()) out += "<li>" + html_text(action.get<std::string>(), 4096) + "</li>";
    }
    out += "</ul></li>\n";
  }
  return advice.empty() ? out : out + "</ol>\n";
}

}  // namespace

Json check_json(const Context& context, const CheckResult& result) {
  Json document = context.document();
  document["time"] = utc_now();
  document["exit_status"] = result.exit_status;
  document["doctor"] = result.doctor;
  document["products"] = Json::array();
  for (const MatmulTrial& trial : result.products) {
    document["products"].push_back(product_json(trial));
  }
  document["command"] = result.command;
  document["proof"] = result.proof;
  document["gpus"] = Json::array();
  for (const WatchedGpu& gpu : result.gpus) document["gpus"].push_back(gpu_json(gpu));
  document["monitor_problem"] = text_or_null(result.monitor_problem);
  document["manifest"] = Json::parse(edition().manifest(context.build.commit));
  return document;
}

std::string check_text(const CheckResult& result, const text::Look& look) {
  TextPage page(look);
  page.heading(1, "See", text_of(result.doctor, "verdict"));
  page.line(3, text_of(result.doctor, "summary"));
  for (const Json& finding : list_of(result.doctor, "findings")) {
    if (!is_fault(finding)) continue;
    page.finding(text_of(finding, "severity"), text_of(finding, "kind"));
    for (const Json& line : list_of(finding, "evidence")) {
      if (line.is_string()) page.line(5, line.get<std::string>());
    }
    const std::string fix = text_of(finding, "fix");
    if (!fix.empty()) page.commands(5, "Fix: " + fix);
  }
  page.heading(2, "Observe: a matrix product of 5000 x 5000");
  if (result.products.empty()) page.line(3, "Left out.");
  for (const MatmulTrial& trial : result.products) {
    page.line(3, trial.words());
    if (!trial.placement.empty()) page.line(5, trial.placement);
  }
  program_text(result, page);
  return page.take();
}

std::string check_html(const CheckResult& result) {
  return report::page("tracefire check", "<h1>tracefire check</h1>\n<p>" + utc_now() + "</p>\n" +
                                             see_html(result.doctor) +
                                             observe_html(result.products) + program_html(result));
}

}  // namespace tracefire::cli
