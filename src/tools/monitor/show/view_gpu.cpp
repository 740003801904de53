// SPDX-License-Identifier: Apache-2.0
// Rows of GPUs.
#include <algorithm>
#include <cmath>

#include "tools/monitor/judge/health.h"
#include "tools/monitor/show/format.h"
#include "tools/monitor/show/view_parts.h"

namespace tracefire::monitor {
namespace {

constexpr double kGib = 1 << 30;
constexpr double kNearLimit = 0.97;
constexpr double kWarmDegrees = 80;

constexpr size_t kNarrow = 78;

/// Columns by the width of the terminal. A width of 0 leaves the column out.
struct Columns {
  size_t index = 3, name = 16, status = 8, bar = 8, busy = 5, sm = 6, memory_bar = 0, memory = 16,
         power = 11, temperature = 7, clock = 0;
};
Columns columns_for(size_t width) {
  Columns c;
  if (width >= 92) c.clock = 10;
  if (width >= 112) c.memory_bar = 9;
  if (width >= 120) c.bar = 14;
  if (width >= 150) c.memory_bar = 15;
  const size_t fixed = c.index + c.status + c.bar + c.busy + c.sm + c.memory_bar + c.memory +
                       c.power + c.temperature + c.clock;
  c.name = width > fixed + 12 ? std::min<size_t>(width - fixed, 30) : 12;
  if (width < kNarrow) {  // what is asked first: how busy, how full, how much power
    c.name = c.bar = c.sm = c.temperature = 0;
    c.power = width >= 50 ? 11 : 7;
  }
  return c;
}

std::string percent(const Reading& reading) {
  return reading.ok() ? print("%.0f%%", reading.value * 100) : "-";
}

Style busy_style(const Health& health) {
  if (!health.grade) return Style::kDim;
  switch (*health.grade) {
    case health::Grade::kHealthy:
      return Style::kGood;
    case health::Grade::kFair:
      return Style::kPlain;
    case health::Grade::kLow:
      return Style::kWarn;
    case health::Grade::kIdle:
      return Style::kDim;
  }
  return Style::kPlain;
}

std::string memory_text(const Reading& used, const Reading& total) {
  if (!used.ok() || !total.ok()) return "-";
  return print("%.1f/%.1f GiB", used.value / kGib, total.value / kGib);
}

double ratio(const Reading& part, const Reading& whole) {
  return part.ok() && whole.ok() && whole.value > 0 ? part.value / whole.value : std::nan("");
}

Style memory_style(const Gpu& gpu) {
  return ratio(gpu[Metric::kMemoryUsed], gpu[Metric::kMemoryTotal]) >= health::kMemoryFull
             ? Style::kBad
             : Style::kPlain;
}

std::string power_text(const Gpu& gpu, size_t width) {
  const Reading& power = gpu[Metric::kPower];
  const Reading& limit = gpu[Metric::kPowerLimit];
  if (!power.ok()) return "-";
  const std::string both = print("%.0f/%.0f W", power.value, limit.value);
  return limit.ok() && both.size() < width ? both : print("%.0f W", power.value);
}

/// A GPU that runs at its power limit works as it was bought to: amber, not red.
Style power_style(const Gpu& gpu) {
  return ratio(gpu[Metric::kPower], gpu[Metric::kPowerLimit]) >= kNearLimit ? Style::kWarn
                                                                            : Style::kPlain;
}

Style temperature_style(const Gpu& gpu) {
  const Reading& now = gpu[Metric::kTemperature];
  const Reading& limit = gpu[Metric::kSlowdownTemperature];
  if (!now.ok()) return Style::kDim;
  if (limit.ok() && now.value >= limit.value - 3) return Style::kBad;
  return now.value >= kWarmDegrees ? Style::kWarn : Style::kPlain;
}

Line main_row(const Gpu& gpu, const Health& health, const ViewState& state) {
  const Columns c = columns_for(state.width);
  Line line;
  line.cell(std::to_string(gpu.index), c.index - 1, Style::kBold, true).add(" ");
  if (c.name > 0) {
    line.cell(gpu.name.empty() ? "unnamed GPU" : gpu.name, c.name - 1, Style::kBold).add(" ");
  }
  if (gpu.lost) {
    return line.add(std::string("lost: ") + Reading::missing(gpu.lost_code).why(), Style::kBad);
  }
  const Style style = busy_style(health);
  line.cell(gpu.mig() && !health.grade ? "MIG" : grade_name(health), c.status, style);
  const Reading& busy = gpu[Metric::kBusy];
  if (c.bar > 0) {
    line.add(bar(busy.or_else(0), c.bar - 1, state.unicode), busy.ok() ? style : Style::kDim);
  }
  line.cell(percent(busy), c.busy, Style::kPlain, true);
  if (c.sm > 0) line.cell(percent(gpu[Metric::kSmActivity]), c.sm, Style::kPlain, true);
  const double used = ratio(gpu[Metric::kMemoryUsed], gpu[Metric::kMemoryTotal]);
  if (c.memory_bar > 0) {
    line.add("  ").add(bar(std::isnan(used) ? 0 : used, c.memory_bar - 2, state.unicode),
                       memory_style(gpu));
  }
  line.cell(memory_text(gpu[Metric::kMemoryUsed], gpu[Metric::kMemoryTotal]), c.memory,
            memory_style(gpu), true);
  line.cell(power_text(gpu, c.power), c.power, power_style(gpu), true);
  const Reading& t = gpu[Metric::kTemperature];
  if (c.temperature > 0)
    line.cell(t.ok() ? print(state.unicode ? "%.0f \u00b0C" : "%.0f C", t.value) : "-",
              c.temperature, temperature_style(gpu), true);
  const Reading& clock = gpu[Metric::kClockSm];
  if (c.clock > 0) {
    line.cell(clock.ok() ? print("%.0f MHz", clock.value * 1e-6) : "-", c.clock, Style::kPlain,
              true);
  }
  return line;
}

/// Pieces that do not fit into the line are left out whole, from the end.
class Pieces {
 public:
  Pieces(const ViewState& state, size_t indent) : state_(state) {
    line_.add(std::string(indent, ' '));
  }
  void add(const std::string& text, Style style = Style::kDim) {
    const std::string gap = empty_ ? "" : state_.unicode ? " \u00b7 " : " | ";
    if (line_.width() + display_width(gap) + display_width(text) > state_.width) return;
    line_.add(gap, Style::kDim).add(text, style);
    empty_ = false;
  }
  bool empty() const { return empty_; }
  Line take() { return std::move(line_); }

 private:
  const ViewState& state_;
  Line line_;
  bool empty_ = true;
};

std::string arrows(const char* what, const Reading& tx, const Reading& rx, bool unicode) {
  if (!tx.ok() && !rx.ok()) return what;
  const char* up = unicode ? "\u2191" : "out ";
  const char* down = unicode ? "\u2193" : "in ";
  return std::string(what) + " " + up + (tx.ok() ? rate_text(tx.value) : "-") + " " + down +
         (rx.ok() ? rate_text(rx.value) : "-");
}

Line links_row(const Gpu& gpu, const ViewState& state) {
  Pieces pieces(state, columns_for(state.width).index);
  const auto clock = [&](Metric m, const char* name) {
    if (gpu[m].ok()) pieces.add(print("%s %.0f MHz", name, gpu[m].value * 1e-6));
  };
  if (columns_for(state.width).name == 0) pieces.add(gpu.name);
  if (columns_for(state.width).clock == 0) clock(Metric::kClockSm, "SM");
  const Reading& gen = gpu[Metric::kPcieGeneration];
  const Reading& lanes = gpu[Metric::kPcieWidth];
  std::string pcie = "PCIe";
  if (gen.ok() && lanes.ok()) pcie += print(" %.0fx%.0f", gen.value, lanes.value);
  pieces.add(arrows(pcie.c_str(), gpu[Metric::kPcieTx], gpu[Metric::kPcieRx], state.unicode));
  const Reading& corrected = gpu[Metric::kEccCorrected];
  const Reading& uncorrected = gpu[Metric::kEccUncorrected];
  if (corrected.ok() && uncorrected.ok()) {
    pieces.add(print("ECC %.0f/%.0f", corrected.value, uncorrected.value),
               uncorrected.value > 0 ? Style::kBad : Style::kDim);
  }
  const Reading& xid = gpu[Metric::kXidLast];
  if (xid.ok() && xid.value > 0) pieces.add(print("Xid %.0f", xid.value), Style::kBad);
  const Reading& links = gpu[Metric::kNvlinkActive];
  if (links.ok() && links.value > 0) {
    pieces.add(arrows(print("NVLink %.0fx", links.value).c_str(), gpu[Metric::kNvlinkTx],
                      gpu[Metric::kNvlinkRx], state.unicode));
  }
  if (gpu[Metric::kTensor].ok()) pieces.add("tensor " + percent(gpu[Metric::kTensor]));
  if (gpu[Metric::kDram].ok()) pieces.add("DRAM " + percent(gpu[Metric::kDram]));
  clock(Metric::kClockMemory, "memory");
  const Reading& t = gpu[Metric::kMemoryTemperature];
  if (t.ok()) pieces.add(print(state.unicode ? "memory %.0f \u00b0C" : "memory %.0f C", t.value));
  const Reading& fan = gpu[Metric::kFan];
  if (fan.ok()) pieces.add("fan " + percent(fan));
  return pieces.take();
}

Line history_row(const std::vector<Point>& points, const ViewState& state) {
  const size_t indent = columns_for(state.width).index;
  Line line;
  line.add(std::string(indent, ' '));
  const struct {
    const char* name;
    float Point::*member;
  } series[] = {{"busy", &Point::busy}, {"memory", &Point::memory}};
  const size_t width = (state.width - indent) / 2 - 10;
  const double seconds =
      points.size() < 2
          ? 0
          : static_cast<double>(points.back().steady_us - points.front().steady_us) * 1e-6;
  for (const auto& s : series) {
    std::vector<float> values;
    for (const Point& point : points) values.push_back(point.*s.member);
    line.add(std::string(s.name) + " ", Style::kDim);
    line.add(sparkline(values, width, state.unicode), Style::kAccent).add("  ");
  }
  line.add(seconds >= 120 ? print("%.0f min", seconds / 60) : print("%.0f s", seconds),
           Style::kDim);
  return line;
}

Line instance_row(const Instance& instance, const ViewState& state) {
  const Columns c = columns_for(state.width);
  Line line;
  line.add(std::string(c.index, ' '));
  const size_t mig = instance.name.find("MIG ");
  const std::string profile = mig == std::string::npos ? instance.name : instance.name.substr(mig);
  if (c.name > 0) line.cell(profile, c.name - 1).add(" ");
  const bool narrow = c.name == 0;
  const std::string ids = print("%d/%d", instance.gpu_instance, instance.compute_instance);
  line.cell(narrow ? profile.substr(mig == std::string::npos ? 0 : 4) : ids, c.status - 1,
            narrow ? Style::kPlain : Style::kDim)
      .add(" ");
  const Reading& engine = instance[Metric::kEngine];
  if (c.bar > 0) {
    line.add(bar(engine.or_else(0), c.bar - 1, state.unicode),
             engine.ok() ? Style::kGood : Style::kDim);
  }
  line.cell(percent(engine), c.busy, Style::kPlain, true);
  if (c.sm > 0) line.cell(percent(instance[Metric::kSmActivity]), c.sm, Style::kPlain, true);
  const double used = ratio(instance[Metric::kMemoryUsed], instance[Metric::kMemoryTotal]);
  if (c.memory_bar > 0) {
    line.add("  ").add(bar(std::isnan(used) ? 0 : used, c.memory_bar - 2, state.unicode));
  }
  line.cell(memory_text(instance[Metric::kMemoryUsed], instance[Metric::kMemoryTotal]), c.memory,
            used >= health::kMemoryFull ? Style::kBad : Style::kPlain, true);
  return line;
}

/// What is wrong: a low grade with its cause, throttling, memory that swaps.
Line trouble_row(const Gpu& gpu, const Health& health, const ViewState& state) {
  Pieces pieces(state, columns_for(state.width).index);
  const bool low = health.grade && *health.grade == health::Grade::kLow;
  const bool idle_job = health.grade && *health.grade == health::Grade::kIdle &&
                        !health.causes.empty() && health.causes.front() != health::Cause::kNoJob &&
                        health.causes.front() != health::Cause::kUnknown;
  std::string words;
  if (low || idle_job) {
    words = health_words(health);
  } else if (!health.causes.empty() && health.causes.front() != health::Cause::kNoJob &&
             health.causes.front() != health::Cause::kUnknown) {
    words = health::kCauses[static_cast<int>(health.causes.front())].text;
    if (!health.culprit.empty()) words += ": " + health.culprit;
  }
  if (gpu.throttle_code == Reading::kOk) {
    const std::string why = throttle_words(gpu.throttle);
    if (!why.empty()) {
      pieces.add("clocks held down: " + why,
                 (gpu.throttle & throttle_fault_bits()) != 0 ? Style::kBad : Style::kWarn);
    }
  }
  if (!words.empty()) {
    const size_t left = state.width - std::min(state.width, columns_for(state.width).index + 1);
    pieces.add(pieces.empty() ? cut_to_width(clean(words), left) : words, Style::kWarn);
  }
  return pieces.empty() ? Line() : pieces.take();
}

}  // namespace

Line gpu_heading(const ViewState& state) {
  const Columns c = columns_for(state.width);
  Line line;
  line.cell("#", c.index - 1, Style::kDim, true).add(" ");
  if (c.name > 0) line.cell("GPU", c.name, Style::kDim);
  line.cell("STATUS", c.status, Style::kDim);
  if (c.bar > 0) {
    line.cell("BUSY", c.bar + c.busy - 1, Style::kDim);
  } else {
    line.cell("BUSY", c.busy, Style::kDim, true);
  }
  if (c.sm > 0) line.cell("SM", c.sm, Style::kDim, true);
  if (c.memory_bar > 0) line.add(std::string(c.memory_bar, ' '));
  line.cell("MEMORY", c.memory, Style::kDim, true);
  line.cell("POWER", c.power, Style::kDim, true);
  if (c.temperature > 0) line.cell("TEMP", c.temperature, Style::kDim, true);
  if (c.clock > 0) line.cell("SM CLOCK", c.clock, Style::kDim, true);
  return line;
}

std::vector<Line> gpu_block(const Gpu& gpu, const std::vector<Point>& points,
                            const ViewState& state, int detail) {
  const Health health = judge(gpu, points);
  std::vector<Line> lines;
  lines.push_back(main_row(gpu, health, state));
  if (gpu.lost) return lines;
  if (detail >= 1) {
    for (const Instance& instance : gpu.instances) lines.push_back(instance_row(instance, state));
    Line trouble = trouble_row(gpu, health, state);
    if (trouble.width() > 0) lines.push_back(std::move(trouble));
  }
  if (detail >= 2) lines.push_back(links_row(gpu, state));
  if (detail >= 3 && points.size() >= 5 && state.width >= 60) {
    lines.push_back(history_row(points, state));
  }
  return lines;
}

}  // namespace tracefire::monitor
