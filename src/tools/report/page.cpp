// SPDX-License-Identifier: Apache-2.0
#include "tools/report/page.h"

#include <algorithm>

#include "tools/report/escape.h"

namespace tracefire::report {
namespace {

constexpr char kStyle[] =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;"
    "color:#1b1f24;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:1.8em}"
    "table{border-collapse:collapse;width:100%}.wide{overflow-x:auto}"
    "td,th{padding:.25em .6em;text-align:left;border-bottom:1px solid #d8dee4;vertical-align:top}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "code{font:12px ui-monospace,monospace;overflow-wrap:anywhere}"
    "code.whole{overflow-wrap:normal}td.free{overflow-wrap:anywhere}"
    "code.block{display:block;font-size:13px;line-height:1.5;white-space:pre-wrap;padding:.6em;"
    "border-radius:.3em;background:#8b949e22}"
    ".v{display:inline-block;padding:.1em .6em;border-radius:.3em;color:#fff;font-size:.85em;"
    "background:#57606a}"
    ".v.on-gpu,.v.gpu-ok,.v.good,.v.healthy{background:#1a7f37}"
    ".v.partly-on-gpu,.v.gpu-degraded,.v.slow,.v.fair{background:#9a6700}"
    ".v.on-cpu,.v.gpu-broken,.v.failed,.v.low,.v.idle{background:#cf222e}"
    "section{border-left:4px solid #8b949e;padding:.1em 1em;margin:1em 0}"
    "section.error{border-color:#cf222e}section.warning{border-color:#9a6700}"
    ".axis{display:flex;justify-content:space-between;margin:0;font-size:.8em;opacity:.75}"
    "section h2{margin-top:.3em}details{margin-top:.6em}svg{width:100%;height:auto}"
    "svg text{font:11px system-ui,sans-serif;fill:currentColor}"
    "@media(max-width:40em){svg text{font-size:20px}}"
    "@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}"
    "td,th{border-color:#30363d}}";

constexpr double kWidth = 1000;
constexpr double kLaneHeight = 22;
constexpr double kLaneName = 110;  ///< width of a lane's name
constexpr double kCurveHeight = 120;
constexpr double kBarName = 240;

std::string svg(double height, std::string_view title) {
  return formatted("<svg viewBox='0 0 %.0f %.0f' role='img'><title>", kWidth, height) +
         html_text(title) + "</title>";
}

std::string label(double x, double y, const char* anchor, std::string_view text) {
  return formatted("<text x='%.1f' y='%.1f' text-anchor='%s'>", x, y, anchor) + html_text(text) +
         "</text>";
}

}  // namespace

std::string page(std::string_view title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
         "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
         "style-src 'unsafe-inline'\"><meta name=viewport content='width=device-width'>"
         "<title>" +
         html_text(title) + "</title><style>" + kStyle + "</style></head><body>" + body +
         "</body></html>\n";
}

std::string cell(std::string_view text, bool number) {
  return std::string(number ? "<td class=n>" : "<td>") + html_text(text, 4096) + "</td>";
}

std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=wide><table><tr>";
  for (const Column& column : columns) {
    out += std::string(column.number ? "<th class=n>" : "<th>") + html_text(column.name) + "</th>";
  }
  out += "</tr>";
  for (const std::vector<std::string>& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) out += cell(row[i], columns[i].number);
    out += "</tr>";
  }
  return out + "</table></div>";
}

std::string curve(std::string_view title, const std::vector<CurvePoint>& points,
                  const std::string& y_top, const std::string& x_first, const std::string& x_last) {
  if (points.empty()) return "";
  double top = 0;
  for (const CurvePoint& p : points) top = std::max(top, p.y);
  const double from = points.front().x, span = std::max(points.back().x - from, 1e-12);
  std::string line;
  double last_x = -1;
  for (const CurvePoint& p : points) {
    const double x = kWidth * (p.x - from) / span;
    const double y = kCurveHeight * (1 - (top > 0 ? p.y / top : 0));
    // A point a quarter of a pixel is enough.
    if (x - last_x < 0.25 && &p != &points.back()) continue;
    line += formatted("%s%.2f,%.2f", line.empty() ? "" : " ", x, y);
    last_x = x;
  }
  std::string out = svg(kCurveHeight + 18, title);
  out += formatted("<rect width='%.0f' height='%.0f' fill='#8b949e22'/>", kWidth, kCurveHeight);
  out += "<polygon fill='#0969da33' points='0," + formatted("%.0f ", kCurveHeight) + line +
         formatted(" %.0f,%.0f'/>", kWidth, kCurveHeight);
  out += "<polyline fill='none' stroke='#0969da' stroke-width='1.5' points='" + line + "'/>";
  out += label(4, 12, "start", y_top) + label(0, kCurveHeight + 13, "start", x_first) +
         label(kWidth, kCurveHeight + 13, "end", x_last);
  return out + "</svg>";
}

std::string time_line(std::string_view title, const std::vector<Lane>& lanes, double from,
                      double to, const std::string& first, const std::string& last) {
  const double span = std::max(to - from, 1e-12);
  const double height = kLaneHeight * static_cast<double>(lanes.size());
  const double scale = (kWidth - kLaneName) / span;
  std::string out = svg(height + 16, title);
  double y = 0;
  for (const Lane& lane : lanes) {
    out += label(0, y + kLaneHeight - 7, "start", lane.name);
    out += formatted("<rect x='%.0f' y='%.1f' width='%.0f' height='%.1f' fill='#8b949e22'/>",
                     kLaneName, y + 2, kWidth - kLaneName, kLaneHeight - 4);
    // Slices closer than half a pixel become one.
    std::vector<Lane::Slice> joined;
    std::vector<Lane::Slice> sorted = lane.slices;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
    size_t in_last = 0;
    for (const Lane::Slice& slice : sorted) {
      const double gap =
          joined.empty() ? 1e9 : slice.start - joined.back().start - joined.back().span;
      if (!joined.empty() && gap * scale < 0.5) {
        Lane::Slice& into = joined.back();
        into.span = std::max(into.span, slice.start + slice.span - into.start);
        into.name = formatted("%zu slices", ++in_last);
      } else {
        joined.push_back(slice);
        in_last = 1;
      }
    }
    for (const Lane::Slice& slice : joined) {
      out += formatted("<rect x='%.2f' y='%.1f' width='%.2f' height='%.1f' fill='%s'><title>",
                       kLaneName + (slice.start - from) * scale, y + 2,
                       std::max(slice.span * scale, 0.4), kLaneHeight - 4, lane.colour) +
             html_text(slice.name, 200) + "</title></rect>";
    }
    y += kLaneHeight;
  }
  out += label(kLaneName, height + 12, "start", first) + label(kWidth, height + 12, "end", last);
  return out + "</svg>";
}

std::string bars(std::string_view title, const std::vector<Part>& parts) {
  std::string out = svg(kLaneHeight * static_cast<double>(parts.size()), title);
  double y = 0;
  for (const Part& part : parts) {
    const double width = (kWidth - kBarName - 60) * std::clamp(part.share, 0.0, 1.0);
    out += label(0, y + kLaneHeight - 7, "start", part.name);
    out += formatted("<rect x='%.0f' y='%.1f' width='%.2f' height='%.1f' fill='#1a7f37'/>",
                     kBarName, y + 3, std::max(width, 0.5), kLaneHeight - 6);
    out += label(kBarName + width + 6, y + kLaneHeight - 7, "start",
                 formatted("%.1f %%", 100 * part.share));
    y += kLaneHeight;
  }
  return out + "</svg>";
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return formatted(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

std::string duration_text(double us) {
  if (us >= 1e6) return formatted("%.3g s", us / 1e6);
  if (us >= 1e3) return formatted("%.3g ms", us / 1e3);
  return formatted("%.3g us", us);
}

}  // namespace tracefire::report
