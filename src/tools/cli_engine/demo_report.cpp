// SPDX-License-Identifier: Apache-2.0
// The report of a demo: one page from its result, the executor's profile and CUPTI's records.
#include "tools/cli_engine/demo_report.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "tools/inject/run.h"
#include "tools/observe/profile_html.h"
#include "tools/report/escape.h"
#include "tools/report/page.h"

namespace tracefire::cli {
namespace {

using report::formatted;
using report::html_text;

/// A text of a document that a program wrote; "" where it is none.
std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::string head(const Json& demo, const ProfiledRun& run) {
  const std::string verdict = text_of(demo.at("verdict"));
  std::vector<std::vector<std::string>> rows;
  std::string devices;
  for (const Json& device : demo.at("devices")) {
    devices += (devices.empty() ? "" : ", ") + text_of(device);
  }
  const Json& sizes = demo.at("sizes");
  rows.push_back({"accuracy", formatted("%.4f of %lld digits that it was not trained on",
                                        demo.at("accuracy").get<double>(),
                                        static_cast<long long>(sizes.at("test")))});
  rows.push_back({"trained on", formatted("%lld digits, %lld epochs, batches of %lld",
                                          static_cast<long long>(sizes.at("train")),
                                          static_cast<long long>(demo.at("epochs")),
                                          static_cast<long long>(demo.at("batch")))});
  rows.push_back({"devices", devices});
  const std::string why = text_of(demo.at("why_no_gpu"));
  if (!why.empty()) rows.push_back({"why no GPU is used, and the fix", why});
  for (const KernelCheck& check : run.checks) rows.push_back({"kernels", check.str()});
  rows.push_back({"time", report::duration_text(static_cast<double>(run.session.wall_ns) / 1e3)});
  return "<h1>Tracefire demo: <span class='v " + html_text(verdict) + "'>" + html_text(verdict) +
         "</span></h1>" + report::table({{"what"}, {"value"}}, rows);
}

std::string learning(const Json& demo) {
  std::vector<report::CurvePoint> loss, accuracy;
  for (const Json& epoch : demo.at("history")) {
    const double x = static_cast<double>(loss.size() + 1);
    loss.push_back({x, epoch.at("loss").get<double>()});
    accuracy.push_back({x, epoch.at("accuracy").get<double>()});
  }
  if (loss.empty()) return "";
  const auto top = [](const std::vector<report::CurvePoint>& points) {
    double most = 0;
    for (const report::CurvePoint& p : points) most = std::max(most, p.y);
    return formatted("%.4g", most);
  };
  const std::string last = formatted("epoch %zu", loss.size());
  return "<h2>Loss</h2>" + report::curve("loss of each epoch", loss, top(loss), "epoch 1", last) +
         formatted("<p>From %.4f to %.4f.</p>", loss.front().y, loss.back().y) +
         "<h2>Accuracy in training</h2>" +
         report::curve("accuracy of each epoch", accuracy, top(accuracy), "epoch 1", last);
}

std::string placement(const Json& demo, const ProfiledRun& run) {
  std::map<std::string, double> work, time;
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : demo.at("proof").at("rows")) {
    const auto text = [&](const char* name) { return text_of(row.value(name, Json())); };
    const double flops = row.at("flops").get<double>();
    work[text("device")] += flops;
    std::string note = text("placement");
    if (!text("reason").empty()) note += ": " + text("reason");
    rows.push_back({text("op"), text("device"), text("kernel"), text("library"),
                    std::to_string(row.at("runs").get<uint64_t>()), formatted("%.3g", flops),
                    note});
  }
  if (!run.profiles.empty()) {
    for (const profiler::Profile::Row& row : run.profiles[0].kernels) {
      time[row.device] += row.time.total_us;
    }
  }
  const auto shares = [](const std::map<std::string, double>& amounts) {
    double total = 0;
    for (const auto& [device, amount] : amounts) total += amount;
    std::vector<report::Part> parts;
    for (const auto& [device, amount] : amounts) {
      parts.push_back({device, total > 0 ? amount / total : 0});
    }
    return parts;
  };
  std::string out = "<h2>Share of the work (FLOP) on each device</h2>" +
                    report::bars("work on each device", shares(work));
  if (!time.empty()) {
    out += "<h2>Share of the operations' time on each device</h2>" +
           report::bars("time on each device", shares(time));
  }
  return out + "<h2>Where every step ran</h2>" +
         report::table({{"operation"},
                        {"device"},
                        {"kernel"},
                        {"library"},
                        {"runs", true},
                        {"FLOP", true},
                        {"placement"}},
                       rows);
}

/// Rows "gpus.0.name" … of whatever the manifest holds.
void add_rows(const std::string& name, const Json& value,
              std::vector<std::vector<std::string>>& rows) {
  if (!value.is_structured()) {
    if (!value.is_null()) rows.push_back({name, value.is_string() ? text_of(value) : value.dump()});
    return;
  }
  for (const auto& [key, part] : value.items()) {
    add_rows(name.empty() ? key : name + "." + key, part, rows);
  }
}

std::string manifest(const Json& demo, const ProfiledRun& run) {
  std::vector<std::vector<std::string>> rows;
  add_rows("", demo.at("manifest"), rows);
  rows.push_back({"host", run.session.host});
  return "<h2>Manifest</h2>" + report::table({{"what"}, {"value"}}, rows);
}

}  // namespace

std::string demo_page(const Json& demo, const ProfiledRun& run) {
  std::string body = head(demo, run) + learning(demo) + placement(demo, run);
  if (!run.profiles.empty()) body += profiler::html_sections(run.profiles[0]);
  body += manifest(demo, run);
  return report::page("Tracefire demo", body);
}

int run_and_report(const Context& context, const std::vector<std::string>& command,
                   const std::string& json, const std::string& html) {
  const std::string folder = inject::make_folder("").value();
  struct Remove {
    std::string path;
    ~Remove() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } const remove{folder};
  const std::string result = folder + "/demo.json";
  std::vector<std::string> words = command;
  words.insert(words.end(), {"--json", result});
  inject::RunOptions options;
  options.command = words;
  options.folder = folder;
  options.version = context.build.version;
  const ProfiledRun run = run_profiled(options);
  if (!run.session.ending.start_error.empty()) {
    context.console.say(
        concat_text("tracefire demo: ", command.front(), ": ", run.session.ending.start_error));
    return run.session.ending.status;
  }
  std::error_code missing;
  if (!std::filesystem::exists(result, missing)) {
    context.console.say("no report was written: the program left no result");
    return run.session.ending.status == 0 ? kFailure : run.session.ending.status;
  }
  const std::string text = read_input(result);
  if (!json.empty()) write_file(json, text);
  try {
    write_file(html, demo_page(Json::parse(text), run));
  } catch (const Json::exception& failure) {
    error(ErrorCode::kBadUsage, "the program's result is no tracefire.demo/1: ", failure.what())
        .throw_if_error();
  }
  return run.session.ending.status;
}

}  // namespace tracefire::cli
