// SPDX-License-Identifier: Apache-2.0
//
// `doctor plan`: what is asked, taken apart; and a table over framework, release, Python, driver
// and GPU against needs.json, which was written down apart from the doctor's tables.
#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "doctor/fixture.h"
#include "support/paths.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/plan_spec.h"
#include "tools/doctor/version.h"

namespace tracefire::test {

namespace {

struct Place {
  std::string gpu, capability, driver, python;
};

const Place kAmpere = {"NVIDIA GeForce RTX 3090", "8.6", "580.65.06", "3.11"};

Tree tree_of(const Place& place) {
  const std::string& driver = place.driver;
  const FixtureJson empty = {{"empty", true}};
  return {
      {"/etc/os-release", "ID=ubuntu\nVERSION_ID=\"22.04\"\n"},
      {"/proc/version", "Linux version 6.8.0-45-generic (builder@host)\n"},
      {"/opt/venv/pyvenv.cfg", "home = /usr/bin\nversion = " + place.python + ".4\n"},
      {"/opt/venv/lib/python" + place.python + "/site-packages/pip-24.0.dist-info/METADATA",
       "Metadata-Version: 2.1\nName: pip\nVersion: 24.0\n"},
      {"/proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX " +
           std::string(doctor::compare_versions(place.capability, "7.5") >= 0
                           ? "Open Kernel Module for x86_64  "
                           : "x86_64 Kernel Module  ") +
           driver + "  Release Build\n"},
      {"/proc/modules", "nvidia_uvm 4800512 0 - Live 0x0\nnvidia 56000000 1 - Live 0x0\n"},
      {"/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n"},
      {"/sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n"},
      {"/usr/lib/x86_64-linux-gnu/libcuda.so." + driver, empty},
      {"/usr/lib/x86_64-linux-gnu/libcuda.so.1", {{"symlink", "libcuda.so." + driver}}},
      {"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so." + driver, empty},
      {"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", {{"symlink", "libnvidia-ml.so." + driver}}},
      {"/dev/nvidia0", empty},
      {"/dev/nvidiactl", empty},
      {"/dev/nvidia-uvm", empty},
      {"/captured/nvidia-smi-query.csv", "index, name, driver_version, compute_cap\n0, " +
                                             place.gpu + ", " + driver + ", " + place.capability +
                                             "\n"}};
}

struct Planned {
  int status = -1;
  FixtureJson json;
  std::string text, summary, fix;  ///< fix: the plan's command
  std::set<std::string> faults;
  bool says(const std::string& words) const { return text.find(words) != text.npos; }
};

Planned plan(const TreeOnDisk& tree, const std::string& asked,
             const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"plan", "--root", tree.root(), "--framework", asked, "--json"};
  words.insert(words.end(), more.begin(), more.end());
  std::ostringstream out, err;
  Planned planned;
  planned.status = doctor::doctor_main(words, out, err);
  planned.text = out.str();
  planned.json = FixtureJson::parse(planned.text);
  planned.summary = planned.json.at("summary").get<std::string>();
  for (const auto& finding : planned.json.at("findings")) {
    if (finding.at("severity") != "info") planned.faults.insert(finding.at("kind"));
    if (finding.at("kind") == "plan") planned.fix = finding.at("fix").get<std::string>();
  }
  return planned;
}

using Kinds = std::set<std::string>;

struct Row {
  Place place;
  std::string asked;
  int status;
  Kinds faults;
  std::string says;     ///< the report holds it
  std::string command;  ///< the plan's command holds it
};

}  // namespace

TEST_CASE("doctor plan: what is asked, taken apart") {
  struct Spec {
    const char *text, *conditions, *shown, *build;
    bool exact;
  };
  for (const Spec& one : {Spec{"tensorflow", "", "", "", false},
                          {"tensorflow==2.21", "==2.21.*", "2.21", "", true},
                          {"tensorflow=2.21", "==2.21.*", "2.21", "", true},
                          {"tensorflow == 2.21.0", "==2.21.0", "2.21.0", "", true},
                          {"tensorflow[and-cuda]~=2.15.0", "~=2.15.0", "~=2.15.0", "", false},
                          {"torch>=2.4, <2.8", ">=2.4,<2.8", ">=2.4,<2.8", "", false},
                          {"torch==2.*", "==2.*", "==2.*", "", false},
                          {"torch<2.8", "<2.8", "<2.8", "", false},
                          {"torch!=2.6.*,>2", "!=2.6.*,>2", "!=2.6.*,>2", "", false},
                          {"torch+cu118", "", "", "cu118", false},
                          {"torch==2.6.0+cu118", "==2.6.0", "2.6.0+cu118", "cu118", true},
                          {"jax[cuda13]", "", "", "cuda13", false},
                          {"jax[cuda12_pip]===0.4.30", "==0.4.30", "0.4.30", "cuda12", true}}) {
    CAPTURE(one.text);
    const doctor::PlanSpec spec = doctor::parse_plan_spec(one.text);
    CHECK(spec.error == "");
    CHECK(spec.conditions == one.conditions);
    CHECK(spec.build == one.build);
    CHECK(spec.exact == one.exact);
    if (*one.shown != '\0' && std::string(one.shown)[0] != '=') CHECK(spec.shown == one.shown);
  }
  for (const char* text : {"torch==abc", "torch==-1", "torch==..", "torch=>2", "torch 2.6",
                           "torch==", "torch~=2", "torch>=2.*", "torch>=2+cu118", "jax[cuda12",
                           "torch==2.6.0+", "torch+", "torch==2.6 2.7", "torch<>2"}) {
    CAPTURE(text);
    CHECK(doctor::parse_plan_spec(text).error != "");
  }
  for (const char* version : {"2.21", "1!2.0", "v2.0", "2.0rc1", "2.0.post1", "2.0.dev3", "1.0a1",
                              "2.6.0+cu124", "0.12.0.1", "999999999999999999999"})
    CHECK_MESSAGE(doctor::is_pep440(version), version);
  for (const char* version : {"", "abc", "2.", ".2", "2..1", "2+", "2.0+a..b", "2.0 ", "-1", "1!"})
    CHECK_FALSE_MESSAGE(doctor::is_pep440(version), version);
}

namespace {

const Place kBlackwell = {"NVIDIA GeForce RTX 5090", "12.0", "580.65.06", "3.12"},
            kVolta = {"Tesla V100-SXM2-16GB", "7.0", "550.54.15", "3.11"},
            kOldDriver = {"NVIDIA GeForce RTX 3090", "8.6", "470.256.02", "3.11"},
            kMiddle = {"NVIDIA GeForce RTX 3090", "8.6", "550.54.15", "3.11"},
            kPython312 = {"NVIDIA GeForce RTX 3090", "8.6", "580.65.06", "3.12"},
            kVolta580 = {"Tesla V100-SXM2-16GB", "7.0", "580.65.06", "3.11"},
            kPython314 = {"NVIDIA GeForce RTX 3090", "8.6", "580.65.06", "3.14"},
            kKepler = {"Tesla K80", "3.7", "470.256.02", "3.8"};

const std::vector<Row>& table() {
  static const std::vector<Row> kRows = {
      {kAmpere,
       "tensorflow==2.21",
       0,
       {},
       "TensorFlow 2.21.0 fits",
       "tensorflow[and-cuda]==2.21.0"},
      {kAmpere, "tensorflow", 0, {}, "2.21.0", "tensorflow[and-cuda]==2.21.0"},
      // Beyond the tables, and none.
      {kAmpere,
       "tensorflow==9.9",
       4,
       {"release-unknown"},
       "TensorFlow 9.9 is an unknown release: the newest known is 2.21.0",
       "==2.21.0"},
      {kAmpere,
       "tensorflow==2.20.7",
       4,
       {"release-unknown"},
       "of 2.20 there are 2.20.0",
       "==2.21.0"},
      {kAmpere, "torch>=3", 4, {"release-unknown"}, "No known release of PyTorch is >=3", "torch"},
      {kAmpere, "torch==0.1", 4, {"release-unknown"}, "the oldest 1.0.0", "torch"},
      {kAmpere,
       "torch==2.9+cu118",
       4,
       {"release-unknown"},
       "has no build cu118; it has cu128, cu126, cu130",
       "torch"},
      {kPython312,
       "jax==0.12.0",
       3,
       {"release-unknown"},
       "do not know which CUDA",
       "jax[cuda12]==0.11.2"},
      {kAmpere, "torch==abc", 2, {}, "\\\"abc\\\" is no version", ""},
      {kAmpere, "tracefire", 2, {}, "tensorflow, torch, jax and keras", ""},
      // Ranges.
      {kAmpere, "tensorflow>=2.15,<2.18", 0, {}, "TensorFlow 2.17.1 fits", "==2.17.1"},
      {kAmpere, "tensorflow~=2.15.0", 0, {}, "TensorFlow 2.15.1 fits", "==2.15.1"},
      {kAmpere, "tensorflow=2.15", 0, {}, "TensorFlow 2.15.1 fits", "==2.15.1"},
      {kAmpere, "tensorflow==2.*", 0, {}, "TensorFlow 2.21.0 fits", "==2.21.0"},
      {kAmpere, "tensorflow<2.12", 4, {"python-too-new"}, "3.8-3.10", "==2.21.0"},
      {kMiddle, "torch>=2.8", 0, {}, "PyTorch 2.11.0 (cu126) fits", "torch==2.11.0\" -i"},
      {kMiddle, "torch>=2.12", 1, {"driver-too-old"}, "580.65.06 or newer", "/cu126"},
      // Each layer.
      {kBlackwell,
       "torch==1.13",
       1,
       {"python-too-new", "cc-too-new"},
       "Python 3.12.4 (its wheels are for Python 3.7-3.11) and the GPU NVIDIA GeForce RTX 5090 "
       "(compute capability 12.0",
       "torch==2.15.0"},
      {kBlackwell, "torch==2.6", 1, {"cc-too-new"}, "compute capability 12.0", "torch==2.15.0"},
      {kBlackwell, "torch==2.7", 1, {"cc-too-new"}, "PyTorch 2.7.1 (cu128)", "whl/cu128"},
      {kBlackwell, "tensorflow", 1, {"cc-too-new"}, "NGC", ""},
      {kBlackwell, "jax", 0, {}, "fits", "jax[cuda12]==0.11.2"},
      {kVolta580, "torch==2.11", 1, {"cc-too-old"}, "PyTorch 2.11.0 (cu126)", "whl/cu126"},
      {kVolta, "torch", 0, {}, "PyTorch 2.11.0 (cu126) fits", "whl/cu126"},
      {kVolta,
       "jax[cuda13]",
       1,
       {"driver-too-old", "cc-too-old"},
       "driver 550.54.15",
       "jax[cuda12]"},
      {kOldDriver, "tensorflow==2.21", 1, {"driver-too-old"}, "525.60.13", "==2.14.1"},
      {kOldDriver, "torch+cu118", 0, {}, "PyTorch 2.7.1 (cu118) fits", "torch==2.7.1\" -i"},
      {kOldDriver, "torch==2.6.0+cu118", 0, {}, "fits", "whl/cu118"},
      {kOldDriver, "torch==2.6.0", 1, {"driver-too-old"}, "Another build of it fits", "whl/cu118"},
      {kOldDriver,
       "torch==2.6.0+cu124",
       1,
       {"driver-too-old"},
       "the driver 470.256.02",
       "whl/cu118"},
      {kPython314, "tensorflow==2.21", 4, {"python-too-new"}, "3.10-3.13", "python3.13 -m venv"},
      {kPython314, "torch", 0, {}, "fits", "torch==2.15.0"},
      {kKepler, "torch", 0, {}, "fits", "cu118"},
      {kKepler,
       "torch==2.4",
       1,
       {"driver-too-old", "cc-too-old"},
       "Another build of it fits",
       "whl/cu118"},
      // Keras has a back end.
      {kAmpere,
       "keras",
       0,
       {},
       "Keras 3.15.1 with TensorFlow 2.21.0 fits",
       "\"keras==3.15.1\" \"tensorflow[and-cuda]==2.21.0\""},
      {kAmpere, "keras==3.5", 0, {}, "with TensorFlow 2.19.1", "\"keras==3.5.0\""},
      {kAmpere, "keras==2.15", 0, {}, "with TensorFlow 2.15.1", "==2.15.1"},
      {kPython314, "keras", 0, {}, "Keras 3.15.1 with JAX", "export KERAS_BACKEND=jax"},
      {kBlackwell, "keras>=3", 0, {}, "with JAX", "jax[cuda12]"},
      {kBlackwell,
       "keras==2.15",
       1,
       {"cc-too-new", "python-too-new"},
       "NVIDIA GeForce RTX 5090",
       "KERAS_BACKEND=jax"}};
  return kRows;
}

}  // namespace

TEST_CASE("doctor plan: each layer that does not fit is named, with what does") {
  for (const Row& row : table()) {
    CAPTURE(row.asked);
    CAPTURE(row.place.gpu);
    TreeOnDisk tree(tree_of(row.place));
    const Planned planned = plan(tree, row.asked);
    CHECK(planned.status == row.status);
    CHECK(planned.faults == row.faults);
    CHECK_MESSAGE(planned.says(row.says), planned.text);
    CHECK_MESSAGE(planned.fix.find(row.command) != std::string::npos, planned.fix);
    if (row.status == 2) continue;
    // Every refusal says what to do.
    for (const auto& finding : planned.json["findings"])
      CHECK_MESSAGE(finding["fix"].get<std::string>().size() > 10, planned.text);
  }
}

namespace {

bool any_code(const FixtureJson& row, const std::string& capability, const FixtureJson& min_cuda) {
  const auto number = [](const std::string& cc) {
    return std::stoi(cc.substr(0, cc.find('.'))) * 10 + std::stoi(cc.substr(cc.find('.') + 1));
  };
  const int wanted = number(capability);
  for (const auto& one : row["sass"]) {
    const int has = std::stoi(one.get<std::string>());
    if (has / 10 == wanted / 10 && has <= wanted) return true;
  }
  for (const auto& one : row["ptx"])
    if (std::stoi(one.get<std::string>()) <= wanted)
      return wanted < 100 || doctor::compare_versions(row["cuda"].get<std::string>(),
                                                      min_cuda[capability].get<std::string>()) >= 0;
  return false;
}

/// All combinations, or of these the one in `of` whose turn it is.
void check_against_needs(size_t of) {
  std::ifstream in(data_file("doctor/needs.json"));
  const FixtureJson needs = FixtureJson::parse(in);
  size_t turn = 0, tried = 0, fitting = 0;
  for (const auto& [gpu, capability] :
       std::vector<std::pair<std::string, std::string>>{{"NVIDIA GeForce RTX 5090", "12.0"},
                                                        {"NVIDIA H100 80GB HBM3", "9.0"},
                                                        {"NVIDIA GeForce RTX 3090", "8.6"},
                                                        {"Tesla V100-SXM2-16GB", "7.0"},
                                                        {"NVIDIA GeForce GTX 1080", "6.1"},
                                                        {"Tesla K80", "3.7"}})
    for (const std::string driver : {"580.65.06", "535.183.01", "470.256.02"})
      for (const std::string python : {"3.8", "3.10", "3.12", "3.14"}) {
        TreeOnDisk tree(tree_of({gpu, capability, driver, python}));
        for (const auto& row : needs["rows"]) {
          if (++turn % of != 0) continue;
          const std::string range = row["python"], release = row["release"];
          const size_t dash = range.find('-');
          const bool fits_python = doctor::compare_versions(python, range.substr(0, dash)) >= 0 &&
                                   doctor::compare_versions(python, range.substr(dash + 1)) <= 0;
          const bool fits_driver =
              doctor::compare_versions(driver, row["driver"].get<std::string>()) >= 0;
          const bool fits_gpu = any_code(row, capability, needs["min_cuda"]);
          const std::string asked = row["framework"].get<std::string>() + "==" + release;
          const Planned planned = plan(tree, asked);
          const std::string where = asked + " " + gpu + " " + driver + " " + python;
          auto has = [&](const char* kind) { return planned.faults.count(kind) != 0; };
          CHECK_MESSAGE((has("python-too-new") || has("python-too-old")) == !fits_python, where);
          CHECK_MESSAGE(has("driver-too-old") == !fits_driver, where);
          CHECK_MESSAGE((has("cc-too-new") || has("cc-too-old")) == !fits_gpu, where);
          // A driver that does not know the GPU is a fault of the machine, not of the release.
          if (!has("driver-unsupported-gpu") && !has("open-modules-needed"))
            CHECK_MESSAGE((planned.status == 0) == (fits_python && fits_driver && fits_gpu),
                          (where + "\n" + planned.text));
          ++tried;
          fitting += fits_python && fits_driver && fits_gpu;
        }
      }
  CHECK(tried > 3000 / of);
  CHECK(fitting > 300 / of);
}

}  // namespace

TEST_CASE("doctor plan: fits where the wheels' needs are met, and nowhere else") {
  check_against_needs(23);
}

TEST_CASE("doctor plan: every release on every machine [deep]") { check_against_needs(1); }

}  // namespace tracefire::test
