// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "tools/inject/escape.h"
#include "tools/inject/report.h"

namespace tracefire::inject {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[1024];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

std::string seconds(double ns) {
  if (ns >= 1e9) return formatted("%.2f s", ns / 1e9);
  if (ns >= 1e6) return formatted("%.2f ms", ns / 1e6);
  return formatted("%.1f us", ns / 1e3);
}

/// Text in lines of at most the look's width, 80 where it has none; those after the first begin
/// with `indent` blanks, which is the column that the text begins in, too.
std::string folded(const std::string& text, size_t indent, const text::Look& look) {
  constexpr int kWidth = 80;
  const std::string out =
      text::paragraph(text, look.width > 0 ? look.width : kWidth, std::string(indent, ' '));
  return out.substr(indent, out.size() - indent - 1);
}

std::string bytes(double n) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (n >= 1024 && unit < 4) {
    n /= 1024;
    ++unit;
  }
  return formatted(n < 1000 ? "%.3g %s" : "%.0f %s", n, kUnits[unit]);
}

std::string cut(const std::string& text, size_t width) {
  if (text.size() <= width) return text;
  size_t end = width - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

void head(const Report& r, const text::Look& look, std::string& out) {
  const Session& s = *r.session;
  std::string command;
  for (const std::string& word : s.command) command += (command.empty() ? "" : " ") + word;
  const std::string place = place_name(r.place);
  out += "verdict   " + text::styled(text::style_of(place), place, look.color);
  if (r.evidence == Evidence::kSampled) out += " (by sampling)";
  if (r.evidence == Evidence::kRecorded) out += " (by Tracefire's own records)";
  out += "\n          " + folded(r.reason, 10, look) + "\n";
  constexpr size_t kShown = 4;
  for (size_t i = 0; i < std::min(kShown, r.incomplete.size()); ++i) {
    out += i == 0 ? "evidence  " : "          ";
    out += folded((i == 0 ? "incomplete: " : "") + r.incomplete[i], 10, look) + "\n";
  }
  if (r.incomplete.size() > kShown) {
    out += formatted("          and %zu more reasons\n", r.incomplete.size() - kShown);
  }
  if (!s.gpu_problem.empty() && r.kernel_count == 0) {
    out += "no GPU    " + folded(s.gpu_problem + " Run `tracefire doctor`.", 10, look) + "\n";
  }
  out += "program   " + folded(cut(command, 200), 10, look) + "\n";
  out += "ended     " + folded(ending_words(s), 10, look) + "\n";
  if (!r.has_steady) return;
  out += formatted("GPU busy  %.1f %% of the steady part (%s), %.1f %% of the whole run\n",
                   100 * r.busy_share, health::kGradeNames[static_cast<size_t>(r.grade)],
                   100 * r.whole_share);
  for (const CauseFigure& c : r.causes) {
    const table::CauseRow& row = table::kCauses[static_cast<size_t>(c.cause)];
    std::string line = row.text;
    if (c.gaps > 0) {
      line += formatted(" (%llu gaps seen, %s on average)", static_cast<unsigned long long>(c.gaps),
                        seconds(1000 * c.mean_gap_us).c_str());
    }
    out += formatted("          %5.1f %%  ", 100 * c.share) + folded(line, 19, look) + "\n";
  }
  out += "memory    ";
  if (r.memory_peak > 0) out += "peak " + bytes(static_cast<double>(r.memory_peak)) + " allocated";
  if (r.nvml_memory_peak > 0) {
    out += formatted("%s%s by NVML", r.memory_peak > 0 ? ", " : "peak ",
                     bytes(static_cast<double>(r.nvml_memory_peak)).c_str());
  }
  if (r.memory_peak == 0 && r.nvml_memory_peak <= 0) out += "not known";
  out += "\n";
}

void kernels(const Report& r, std::string& out) {
  if (r.kernels.empty()) return;
  out += formatted("\nkernels   %llu, %s in all\n", static_cast<unsigned long long>(r.kernel_count),
                   seconds(static_cast<double>(r.kernel_ns)).c_str());
  for (const ClassFigure& c : r.classes) {
    out += formatted("          %5.1f %%  %s", 100 * c.share,
                     table::kClasses[static_cast<size_t>(c.work)].text);
    if (is_product(c.work) && c.total > 0) {
      const auto all = static_cast<double>(c.total);
      out += formatted(
          " (tensor cores %.0f %%, not %.0f %%, unknown %.0f %%)",
          100 * static_cast<double>(c.on_tensor_cores) / all,
          100 * static_cast<double>(c.not_on_tensor_cores) / all,
          100 * static_cast<double>(c.total - c.on_tensor_cores - c.not_on_tensor_cores) / all);
    }
    out += "\n";
  }
  out += "\n  share       time     count      mean  kernel\n";
  for (size_t i = 0; i < std::min<size_t>(r.kernels.size(), 12); ++i) {
    const KernelFigure& k = r.kernels[i];
    const double mean =
        k.count == 0 ? 0 : static_cast<double>(k.total) / static_cast<double>(k.count);
    out += formatted(" %5.1f %% %10s %9llu %9s  %s\n", 100 * k.share,
                     seconds(static_cast<double>(k.total)).c_str(),
                     static_cast<unsigned long long>(k.count), seconds(mean).c_str(),
                     cut(k.short_name, 40).c_str());
  }
  if (r.kernels.size() > 12) out += formatted("  … and %zu more\n", r.kernels.size() - 12);
}

std::string in_flop(double flops) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  int unit = 0;
  while (flops >= 1000 && unit < 6) {
    flops /= 1000;
    ++unit;
  }
  return formatted("%.3g %s", flops, kUnits[unit]);
}

/// Operations of Tracefire's programs: two lines each, so that layers and source lines have room.
void operations(const Report& r, const text::Look& look, std::string& out) {
  if (!r.ops.found) return;
  out += "\noperations (Tracefire's own records)\n";
  out += "   work      FLOP      runs  GPU time    device   operation\n";
  constexpr size_t kShown = 12;
  for (size_t i = 0; i < std::min(r.ops.ops.size(), kShown); ++i) {
    const OpFigure& o = r.ops.ops[i];
    const std::string time =
        o.kernel_ns < 0 ? "-" : (o.estimated ? "~" : "") + seconds(o.kernel_ns);
    out +=
        formatted(" %5.1f %% %9s %9llu %9s  %-9s  ", 100 * o.work_share, in_flop(o.flops).c_str(),
                  static_cast<unsigned long long>(o.runs), time.c_str(), cut(o.device, 9).c_str());
    out += cut(o.op + " (" + o.kernel + ")", 30) + "\n";
    std::string second = o.layer;
    if (!o.location.empty()) second += (second.empty() ? "at " : ", at ") + o.location;
    if (o.placement != "on device") second += (second.empty() ? "" : "; ") + o.placement;
    if (!o.reason.empty()) second += ": " + o.reason;
    if (!second.empty()) out += "         " + folded(cut(second, 300), 9, look) + "\n";
  }
  if (r.ops.ops.size() > kShown) {
    out += formatted("  … and %zu more\n", r.ops.ops.size() - kShown);
  }
  for (size_t i = 0; i < std::min<size_t>(r.ops.programs.size(), 4); ++i) {
    const ProgramFigure& p = r.ops.programs[i];
    out += formatted("  program %s: %llu runs, %s of the host's time, longest %s\n",
                     cut(p.name.empty() ? "(no name)" : p.name, 32).c_str(),
                     static_cast<unsigned long long>(p.runs),
                     seconds(static_cast<double>(p.host_ns)).c_str(),
                     seconds(static_cast<double>(p.longest_ns)).c_str());
  }
}

void copies(const Report& r, std::string& out) {
  if (r.copies.empty()) return;
  out += "\ncopies\n";
  for (const CopyFigure& c : r.copies) {
    out += formatted("  %-28s %9llu x  %10s  %9s  %.3g GB/s\n", c.way.c_str(),
                     static_cast<unsigned long long>(c.count),
                     bytes(static_cast<double>(c.bytes)).c_str(),
                     seconds(static_cast<double>(c.total)).c_str(), c.gigabytes_per_second);
  }
}

/// Which processes used the GPU, where NVML alone knows.
void sampled_processes(const Report& r, std::string& out) {
  bool any = false;
  for (const ProcessSeen& p : r.session->processes) {
    if (!p.on_gpu) continue;
    if (!any) out += "\nprocesses on a GPU, by NVML\n";
    any = true;
    out += formatted("  pid %-8d %-16s ", static_cast<int>(p.pid), printable(p.name, 16).c_str()) +
           bytes(static_cast<double>(p.gpu_memory_peak)) + " at most\n";
  }
}

void processes(const Report& r, const text::Look& look, std::string& out) {
  if (r.evidence == Evidence::kSampled) return sampled_processes(r, out);
  if (r.processes.size() < 2) return;
  out += "\nprocesses\n";
  for (const ProcessFigure& p : r.processes) {
    out += formatted("  %-13s %s", place_name(p.place), p.title.c_str());
    for (const GpuUse& use : p.gpus) {
      out += formatted("; %s %.1f %% busy", use.name.c_str(), 100 * use.busy_share);
    }
    out += "\n                " + folded(cut(p.command, 100), 16, look) + "\n";
  }
}

}  // namespace

std::string ending_words(const Session& s) {
  const Ending& e = s.ending;
  const std::string wall = seconds(static_cast<double>(s.wall_ns));
  std::string out;
  if (e.known) {
    out = formatted("status %d after %s", e.status, wall.c_str());
    if (e.signal != 0) out += formatted(", by signal %d", e.signal);
  } else if (e.over) {
    out = "within the " + wall + " that it was watched; its parent alone is told the status";
  } else {
    out = "not yet after the " + wall + " that it was watched";
  }
  return out + "; CPU time " + seconds(static_cast<double>(e.user_ns + e.system_ns));
}

std::string report_text(const Report& r, const text::Look& look) {
  std::string out;
  head(r, look, out);
  operations(r, look, out);
  kernels(r, out);
  copies(r, out);
  processes(r, look, out);
  if (!r.throttling.empty()) {
    out += "\nclocks were held down by\n";
    for (const std::string& text : r.throttling) out += "  " + text + "\n";
  }
  if (!r.advice.empty()) out += "\nwhat to do next\n";
  int number = 1;
  for (const Advice& a : r.advice) {
    out += formatted("  %d. ", number++) + folded(a.finding, 5, look) + "\n";
    for (const std::string& text : a.actions) out += "     - " + folded(text, 7, look) + "\n";
  }
  if (!r.notes.empty()) out += "\nnotes\n";
  for (const std::string& text : r.notes) out += "  - " + folded(text, 4, look) + "\n";
  return out + "\n" + folded(kWorth, 0, look) + "\n";
}

}  // namespace tracefire::inject
