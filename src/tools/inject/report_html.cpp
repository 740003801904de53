// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "tools/inject/escape.h"
#include "tools/inject/report.h"
#include "tools/report/page.h"

namespace tracefire::inject {
namespace {

// Numbers go through formatted(), every text through html_text().
using report::cell;
using report::formatted;

constexpr double kWidth = 1000;
constexpr double kTicks = 26;  // height of the line of times below a chart

/// A time in the unit in which it has three digits.
std::string seconds(uint64_t ns) {
  const auto time = static_cast<double>(ns);
  if (ns == 0) return "0 s";
  if (time >= 1e9) return formatted("%.2f s", time / 1e9);
  return time >= 1e6 ? formatted("%.3g ms", time / 1e6) : formatted("%.3g us", time / 1e3);
}

/// A number with the prefix of its thousands: "603 G".
std::string in_thousands(double number, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int prefix = 0;
  for (; number >= 1000 && prefix < 6; ++prefix) number /= 1000;
  return formatted("%.3g %s%s", number, kPrefixes[prefix], unit);
}

/// Length of the time axis that all charts share, ns: from the start of the program to its end.
double axis_of(const Report& r) {
  const auto wall = static_cast<double>(std::max<int64_t>(r.session->wall_ns, 1));
  double end = wall;
  for (const ProcessFigure& p : r.processes) {
    end = std::max(
        end, static_cast<double>(p.record->now.real) - static_cast<double>(r.session->started_ns));
  }
  return end < 2 * wall + 1e10 ? end : wall;  // another host's clock may be far off
}

std::string chart(double height, const std::string& title) {
  return formatted("<svg viewBox='0 0 %.0f %.0f' role='img'><title>", kWidth, height + kTicks) +
         html_text(title) + "</title>" +
         formatted("<rect width='%.0f' height='%.0f' fill='#8b949e22'/>", kWidth, height);
}

std::string chart_end(double height, double axis) {
  std::string out;
  for (int tick = 0; tick <= 4; ++tick) {
    out += formatted("<text x='%.0f' y='%.0f' text-anchor='%s'>%.3g s</text>", kWidth * tick / 4,
                     height + kTicks - 8,
                     tick == 0   ? "start"
                     : tick == 4 ? "end"
                                 : "middle",
                     axis * tick / 4 / 1e9);
  }
  return out + "</svg>";
}

std::string table_of(const std::string& head) {
  return "<div class=wide><table><tr>" + head + "</tr>";
}
constexpr char kTableEnd[] = "</table></div>";

void row(std::string& out, const char* name, const std::string& value) {
  out += "<tr><th>" + html_text(name) + "</th>" + cell(value) + "</tr>";
}

void head(const Report& r, std::string& out) {
  const Session& s = *r.session;
  const std::string place = place_name(r.place);
  out += "<h1>GPU proof: <span class='v " + place + "'>" + place + "</span></h1><p>" +
         html_text(r.reason) + ".</p><table>";
  std::string command;
  for (const std::string& word : s.command) command += (command.empty() ? "" : " ") + word;
  row(out, "program", command);
  row(out, "host", s.host);
  row(out, "ended", ending_words(s));
  if (!s.gpu_problem.empty() && r.kernel_count == 0)
    row(out, "no GPU", s.gpu_problem + " Run `tracefire doctor`.");
  if (r.has_steady) {
    row(out, "GPU busy",
        formatted("%.1f %% of the steady part (%s), %.1f %% of the whole run", 100 * r.busy_share,
                  health::kGradeNames[static_cast<size_t>(r.grade)], 100 * r.whole_share));
  }
  if (r.memory_peak > 0) {
    row(out, "memory peak",
        formatted("%.2f GiB allocated", static_cast<double>(r.memory_peak) / (1 << 30)));
  }
  if (r.nvml_memory_peak > 0) {
    row(out, "memory peak by NVML",
        formatted("%.2f GiB", static_cast<double>(r.nvml_memory_peak) / (1 << 30)));
  }
  for (const std::string& text : r.throttling) row(out, "clocks held down by", text);
  for (const std::string& text : r.incomplete) row(out, "evidence incomplete", text);
  out += "</table>";
}

/// Busy share over the run, one strip a GPU: kernels, communication, copies, one above the other.
void time_line(const ProcessFigure& p, const GpuUse& use, const Session& session, double axis,
               std::string& out) {
  const ProcessRecord& record = *p.record;
  const auto found = record.gpu_parts.find(use.device);
  if (found == record.gpu_parts.end() || record.part_ns == 0 || found->second.empty()) return;
  const std::vector<GpuPart>& parts = found->second;
  constexpr size_t kColumns = 512;
  constexpr double kHeight = 80;
  const size_t step = (parts.size() + kColumns - 1) / kColumns;
  const size_t columns = (parts.size() + step - 1) / step;
  const double width =
      kWidth * static_cast<double>(step) * static_cast<double>(record.part_ns) / axis;
  double begin =
      kWidth * (static_cast<double>(record.first.real) - static_cast<double>(session.started_ns)) /
      axis;
  if (begin < 0 || begin > kWidth) begin = 0;
  out += "<p>" + html_text(p.title + ", " + use.name) +
         formatted(": %.1f %% busy in the steady part</p>", 100 * use.busy_share);
  out += chart(kHeight, "busy share of " + use.name + " over time");
  for (size_t c = 0; c < columns; ++c) {
    GpuPart sum;
    double span = 0;
    for (size_t i = c * step; i < std::min((c + 1) * step, parts.size()); ++i) {
      sum.compute += parts[i].compute;
      sum.communication += parts[i].communication;
      sum.copies += parts[i].copies;
      span += static_cast<double>(record.part_ns);
    }
    double base = kHeight;
    const double x = begin + width * static_cast<double>(c);
    if (x >= kWidth) break;
    const auto bar = [&](uint64_t ns, const char* colour) {
      const double height = std::min(base, kHeight * static_cast<double>(ns) / span);
      if (height < 0.05) return;
      base -= height;
      out += formatted("<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' fill='%s'/>", x, base,
                       std::min(width, kWidth - x), height, colour);
    };
    bar(sum.compute, "#1a7f37");
    bar(sum.communication, "#8250df");
    bar(sum.copies, "#bf8700");
  }
  out += chart_end(kHeight, axis);
}

/// CPU cores that the program kept busy, by the samples: all there is where no GPU was used.
void cpu_line(const Session& s, double axis, std::string& out) {
  if (s.samples.size() < 2) return;
  constexpr double kHeight = 60;
  double most = 1;
  std::vector<double> cores;
  for (size_t i = 1; i < s.samples.size(); ++i) {
    const double time = static_cast<double>(s.samples[i].at_ns - s.samples[i - 1].at_ns);
    const double used = static_cast<double>(s.samples[i].cpu_ns - s.samples[i - 1].cpu_ns);
    cores.push_back(time > 0 ? std::clamp(used / time, 0.0, 1e6) : 0);
    most = std::max(most, cores.back());
  }
  out += formatted("<p>CPU cores kept busy by the program: at most %.1f of %d</p>", most, s.cores);
  out += chart(kHeight, "CPU cores kept busy over time");
  for (size_t i = 0; i < cores.size(); ++i) {
    const double begin = kWidth * static_cast<double>(s.samples[i].at_ns) / axis;
    const double end =
        std::min(kWidth, kWidth * static_cast<double>(s.samples[i + 1].at_ns) / axis);
    const double height = kHeight * cores[i] / most;
    if (height < 0.05 || end <= begin) continue;
    out += formatted("<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' fill='#0969da'/>", begin,
                     kHeight - height, end - begin, height);
  }
  out += chart_end(kHeight, axis);
}

void causes(const Report& r, std::string& out) {
  if (r.causes.empty()) return;
  out += "<h2>Where the rest of the time went</h2>" +
         table_of(
             "<th class=n>share</th><th>cause</th><th class=n>gaps seen</th>"
             "<th class=n>mean</th>");
  for (const CauseFigure& c : r.causes) {
    const table::CauseRow& cause = table::kCauses[static_cast<size_t>(c.cause)];
    out += "<tr>" + cell(formatted("%.1f %%", 100 * c.share), true) +
           cell(std::string(cause.text) + ": " + cause.explain) +
           cell(formatted("%llu", static_cast<unsigned long long>(c.gaps)), true) +
           cell(c.gaps > 0 ? seconds(static_cast<uint64_t>(1000 * c.mean_gap_us)) : "-", true) +
           "</tr>";
  }
  out += kTableEnd;
}

/// A name; the whole of it, where that is longer, opens at a click.
std::string folding(const std::string& brief, const std::string& whole) {
  constexpr size_t kBrief = 90;
  if (brief == whole && whole.size() <= kBrief) return "<code>" + html_text(whole) + "</code>";
  return "<details><summary><code>" + html_text(brief, kBrief) + "</code></summary><code>" +
         html_text(whole, 1000) + "</code></details>";
}

void kernels(const Report& r, std::string& out) {
  if (r.kernels.empty()) return;
  out += "<h2>Kernels</h2>" +
         table_of(
             "<th class=n>share</th><th class=n>time</th><th class=n>count</th><th>class</th>"
             "<th>tensor cores</th><th>kernel</th>");
  for (size_t i = 0; i < std::min<size_t>(r.kernels.size(), 100); ++i) {
    const KernelFigure& k = r.kernels[i];
    const char* cores = !is_product(k.kind.work)                   ? ""
                        : k.kind.tensor_cores == TensorCores::kYes ? "yes"
                        : k.kind.tensor_cores == TensorCores::kNo  ? "no"
                                                                   : "unknown";
    out += "<tr>" + cell(formatted("%.1f %%", 100 * k.share), true) + cell(seconds(k.total), true) +
           cell(formatted("%llu", static_cast<unsigned long long>(k.count)), true) +
           cell(table::kClasses[static_cast<size_t>(k.kind.work)].text) + cell(cores) + "<td>" +
           folding(k.short_name, k.name) + "</td></tr>";
  }
  out += kTableEnd;
  if (r.kernels.size() > 100) {
    out += formatted("<p>%zu more are in the JSON report.</p>", r.kernels.size() - 100);
  }
}

void operations(const Report& r, std::string& out) {
  if (!r.ops.found) return;
  out +=
      "<h2>Operations</h2><p>By the records of Tracefire's executor. ~: the kernels are shared by "
      "several operations and their time was divided by the work.</p>" +
      table_of(
          "<th class=n>work</th><th class=n>FLOP</th><th class=n>runs</th>"
          "<th class=n>GPU time</th><th>device</th><th>operation</th>"
          "<th>layer, source line</th><th>placement</th>");
  for (size_t i = 0; i < std::min<size_t>(r.ops.ops.size(), 100); ++i) {
    const OpFigure& o = r.ops.ops[i];
    std::string time = "-";
    if (o.kernel_ns >= 0) {
      time = (o.estimated ? "~" : "") + seconds(static_cast<uint64_t>(o.kernel_ns));
    }
    out += "<tr>" + cell(formatted("%.1f %%", 100 * o.work_share), true) +
           cell(o.flops > 0 ? in_thousands(o.flops, "") : "-", true) +
           cell(formatted("%llu", static_cast<unsigned long long>(o.runs)), true) +
           cell(time, true) + cell(o.device) + "<td>" + html_text(o.op) + "<br><code class=whole>" +
           html_text(o.kernel + (o.library.empty() ? "" : ", " + o.library)) +
           "</code></td><td class=free>" + html_text(o.layer) + "<br><code>" +
           html_text(o.location) + "</code></td>" +
           cell(o.placement + (o.reason.empty() ? "" : ": " + o.reason)) + "</tr>";
  }
  out += kTableEnd;
  if (r.ops.ops.size() > 100) {
    out += formatted("<p>%zu more are in the JSON report.</p>", r.ops.ops.size() - 100);
  }
}

void rest(const Report& r, std::string& out) {
  if (!r.copies.empty()) {
    out += "<h2>Copies</h2>" +
           table_of(
               "<th>way</th><th class=n>count</th><th class=n>bytes</th><th class=n>time</th>"
               "<th class=n>rate</th>");
    for (const CopyFigure& c : r.copies) {
      out += "<tr>" + cell(c.way) +
             cell(formatted("%llu", static_cast<unsigned long long>(c.count)), true) +
             cell(in_thousands(static_cast<double>(c.bytes), "B"), true) +
             cell(seconds(c.total), true) +
             cell(formatted("%.3g GB/s", c.gigabytes_per_second), true) + "</tr>";
    }
    out += kTableEnd;
  }
  if (!r.processes.empty()) {
    out += "<h2>Processes</h2>" + table_of(
                                      "<th>verdict</th><th>process</th><th class=n>kernels</th>"
                                      "<th class=n>kernel time</th><th class=n>CPU time</th>");
  }
  for (const ProcessFigure& p : r.processes) {
    out += "<tr>" + cell(place_name(p.place)) + "<td>" + html_text(p.title) + "<br><code>" +
           html_text(p.command) + "</code></td>" +
           cell(formatted("%llu", static_cast<unsigned long long>(p.kernels)), true) +
           cell(seconds(p.kernel_ns), true) + cell(seconds(p.cpu_ns), true) + "</tr>";
  }
  if (!r.processes.empty()) out += kTableEnd;
  if (!r.notes.empty()) {
    out += "<h2>Notes</h2><ul>";
    for (const std::string& text : r.notes) out += "<li>" + html_text(text) + "</li>";
    out += "</ul>";
  }
}

}  // namespace

std::string report_html(const Report& r) {
  std::string out;
  head(r, out);
  out += "<h2>Time line</h2><p>From the start of the program to its end.";
  if (r.has_steady) {
    out +=
        " Share of the time with compute kernels (green), communication (violet) and copies "
        "(yellow).";
  }
  out += "</p>";
  const double axis = axis_of(r);
  for (const ProcessFigure& p : r.processes) {
    for (const GpuUse& use : p.gpus) time_line(p, use, *r.session, axis, out);
  }
  cpu_line(*r.session, axis, out);
  causes(r, out);
  if (!r.advice.empty()) {
    out += "<h2>What to do next</h2><ol>";
    for (const Advice& a : r.advice) {
      out += "<li>" + html_text(a.finding) + "<ul>";
      for (const std::string& text : a.actions) out += "<li>" + html_text(text) + "</li>";
      out += "</ul></li>";
    }
    out += "</ol>";
  }
  operations(r, out);
  kernels(r, out);
  rest(r, out);
  return report::page("GPU proof", out + "<p><small>" + html_text(kWorth) + "</small></p>");
}

}  // namespace tracefire::inject
