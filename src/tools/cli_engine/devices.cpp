// SPDX-License-Identifier: Apache-2.0
// `tracefire devices`: what work can run on.
#include <cstdio>

#include "tools/cli/command.h"
#include "tracefire/config.h"

namespace tracefire::cli {
namespace {

struct Options {
  bool json = false, libraries = false;
};

std::string gibibytes(uint64_t bytes) {
  if (bytes == 0) return "unknown";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

void print_json(const Context& context, const Options& options,
                const std::vector<DeviceDescription>& devices, const std::string& why_no_gpu) {
  const Device preferred = default_device();
  Json list = Json::array();
  for (const DeviceDescription& device : devices) {
    list.push_back({{"device", device.device.str()},
                    {"kind", device_kind_name(device.device.kind)},
                    {"index", device.device.index},
                    {"name", device.name},
                    {"architecture", device.architecture},
                    {"memory_bytes", device.memory_bytes},
                    {"driver", text_or_null(device.driver)},
                    {"default", device.device == preferred}});
  }
  Json document = context.document();
  document["time"] = utc_now();
  document["devices"] = std::move(list);
  document["why_no_gpu"] = text_or_null(why_no_gpu);
  if (options.libraries) {
    Json used = Json::array();
    for (const LibraryDescription& library : list_libraries()) {
      used.push_back({{"name", library.name},
                      {"version", text_or_null(library.version)},
                      {"path", library.path},
                      {"origin", library.origin}});
    }
    document["libraries"] = std::move(used);
    document["search"] = lines_of(library_report());
  }
  context.print(document);
}

void print_text(const Context& context, const Options& options,
                const std::vector<DeviceDescription>& devices, const std::string& why_no_gpu) {
  Console& console = context.console;
  Table table({"DEVICE", "NAME", "ARCHITECTURE", "MEMORY", "DRIVER"});
  for (const DeviceDescription& device : devices) {
    table.row({device.device.str(), device.name, device.architecture,
               gibibytes(device.memory_bytes), device.driver.empty() ? "-" : device.driver},
              device.device.kind == Device::kGpu ? Style::kGood : Style::kPlain);
  }
  console.print(table.text(console));
  if (!why_no_gpu.empty()) {
    // One line, but for a terminal that is too narrow for it.
    const std::string line = "No GPU is used: " + printable(why_no_gpu, 2000);
    const int width = console.width() > 0 ? console.width() : static_cast<int>(line.size());
    console.print("\n");
    for (const std::string& part : wrapped(line, width)) console.print(part + "\n");
  }
  if (!options.libraries) return;
  console.print("\n" + console.styled(Style::kBold, "Libraries in use") + "\n");
  Table libraries({});
  for (const LibraryDescription& library : list_libraries()) {
    libraries.row({library.name, library.version.empty() ? "-" : library.version, library.path,
                   library.origin});
  }
  console.print(libraries.rows() == 0 ? "  none\n" : libraries.text(console, 2));
  console.print("\n" + console.styled(Style::kBold, "Where NVIDIA's libraries were looked for") +
                "\n");
  for (const std::string& line : lines_of(library_report())) {
    console.print("  " + printable(line, 4096) + "\n");
  }
}

}  // namespace

Command devices_command() {
  Command command;
  command.name = "devices";
  command.summary = "lists the devices, and says why no GPU can be used";
  command.text = {
      "Lists the devices that work can run on, GPUs first: name, architecture, memory and driver. "
      "Where no GPU can be used it says why, and what to do about it, in one line.",
      "With --libraries it also lists the libraries in use with their versions and files, and "
      "every "
      "place where NVIDIA's libraries were looked for. They are found at run time; the setting "
      "cuda_path names a folder to look in first."};
  command.examples = {{"tracefire devices", "The table."},
                      {"tracefire devices --json | jq -r '.why_no_gpu // \"a GPU is used\"'",
                       "The same for programs: here, the one line."},
                      {"tracefire devices --libraries --set cuda_path=/opt/cuda-13.1",
                       "Which libraries would be used with another toolkit."}};
  command.schema = "tracefire.devices/1";
  command.define = [](CLI::App& app) -> Action {
    auto options = std::make_shared<Options>();
    app.add_flag("--libraries", options->libraries,
                 "also shows the libraries in use and where they were looked for");
    add_json_flag(app, options->json, "tracefire.devices/1");
    return [options](Context& context) -> int {
      const std::vector<DeviceDescription> devices = list_devices();
      const std::string why = why_no_gpu();
      (options->json ? print_json : print_text)(context, *options, devices, why);
      return kSuccess;
    };
  };
  return command;
}

}  // namespace tracefire::cli
