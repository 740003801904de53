// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "core/base/status.h"
#include "tracefire/nn.h"

namespace tracefire::nn {
namespace {

Status no_figure(const std::string& name, const Report& report) {
  std::string known;
  for (const auto& [other, value] : report.figures()) known += (known.empty() ? "" : ", ") + other;
  return error(ErrorCode::kIndexOutOfRange, "there is no figure '", name,
               "'; there are: ", known.empty() ? "none" : known);
}

}  // namespace

void Report::set(const std::string& name, double value) {
  for (auto& [known, old] : figures_) {
    if (known == name) {
      old = value;
      return;
    }
  }
  figures_.emplace_back(name, value);
}

double Report::operator[](const std::string& name) const {
  for (const auto& [known, value] : figures_) {
    if (known == name) return value;
  }
  no_figure(name, *this).throw_if_error();
  return 0;
}

std::string Report::str() const {
  std::string text;
  for (const auto& [name, value] : figures_) {
    char number[48];
    std::snprintf(number, sizeof number, "%.4f", value);
    text += (text.empty() ? "" : "  ") + name + " " + number;
  }
  return text;
}

std::vector<double> History::operator[](const std::string& name) const {
  std::vector<double> values;
  for (const Report& report : epochs) {
    for (const auto& [known, value] : report.figures()) {
      if (known == name) values.push_back(value);
    }
  }
  if (values.empty()) {
    no_figure(name, epochs.empty() ? Report() : epochs.back()).throw_if_error();
  }
  return values;
}

}  // namespace tracefire::nn
