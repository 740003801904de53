// SPDX-License-Identifier: Apache-2.0
//
// `doctor diff`: trees, reports and manifests against each other.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "doctor/fixture.h"
#include "nvidia/emulator_setup.h"
#include "support/paths.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/read/document.h"
#include "tools/doctor/read/packages.h"

namespace tracefire::test {

namespace {

struct Told {
  int status = -1;
  FixtureJson json;
  std::string text;
  /// Place of a difference in the list, -1 where it is none.
  int place(const std::string& name) const {
    int i = 0;
    for (const auto& one : json["differences"]) {
      if (one["name"] == name) return i;
      ++i;
    }
    return -1;
  }
  std::string effect(const std::string& name) const {
    int at = place(name);
    return at < 0 ? "none" : json["differences"][static_cast<size_t>(at)]["effect"];
  }
};

Told diff(const std::string& a, const std::string& b) {
  Told told;
  std::ostringstream out, text, err;
  told.status = doctor::doctor_main({"diff", a, b, "--json"}, out, err);
  told.json = FixtureJson::parse(out.str());
  CHECK(doctor::doctor_main({"diff", a, b}, text, err) == told.status);
  told.text = text.str();
  return told;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// fx01 with other versions, in another place.
Tree changed(const std::vector<std::pair<std::string, std::string>>& swaps) {
  Tree out;
  for (const auto& [path, content] : fixture("fx01-ok").files) {
    std::string name = path;
    FixtureJson made = content;
    for (const auto& [from, to] : swaps) {
      name = replaced(name, from, to);
      if (made.is_string()) made = replaced(made.get<std::string>(), from, to);
      if (made.is_object() && made.contains("symlink"))
        made["symlink"] = replaced(made["symlink"].get<std::string>(), from, to);
    }
    out[name] = made;
  }
  return out;
}

const char* const kManifest = R"({
  "schema": "tracefire.manifest/1", "time": "2026-11-30T10:00:00Z",
  "tracefire": {"version": "0.3.0", "commit": "abc123"},
  "platform": {"system": "Ubuntu 22.04", "kernel": "Linux 6.8.0-45-generic", "machine": "x86_64",
               "processor": "AMD EPYC", "instructions": "x86-64 avx512", "memory_bytes": 68719476736},
  "python": {"version": "3.11.9", "keras": "3.10.0", "numpy": "1.26.4"},
  "driver": "550.54.15",
  "gpus": [{"device": "/GPU:0", "name": "NVIDIA GeForce RTX 3090", "capability": "8.6",
            "memory_bytes": 25769803776, "uuid": "GPU-1"}],
  "libraries": [{"name": "cuDNN", "version": "9.3.0", "path": "/x", "origin": "pip", "in_use": true}],
  "seed": 7, "precision": "tf32",
  "settings": [{"name": "fuse", "value": "off", "source": "flag"}]})";

}  // namespace

TEST_CASE("doctor diff: the same tree is the same") {
  TreeOnDisk a(fixture("fx01-ok").files), b(fixture("fx01-ok").files);
  Told told = diff(a.root(), b.root());
  CHECK(told.status == 0);
  CHECK(told.json["schema"] == "tracefire.doctor.diff/1");
  CHECK(told.json["same"] == true);
  CHECK(told.json["differences"].empty());
  // The place of the environment changes nothing.
  TreeOnDisk moved(changed({{"/opt/venv", "/srv/other"}}));
  CHECK(diff(a.root(), moved.root()).status == 0);
}

TEST_CASE("doctor diff: what can change results comes first") {
  TreeOnDisk a(fixture("fx01-ok").files);
  TreeOnDisk b(changed({{"tensorflow-2.20.0", "tensorflow-2.19.0"},
                        {"Name: tensorflow\nVersion: 2.20.0", "Name: tensorflow\nVersion: 2.19.0"},
                        {"nvidia_cudnn_cu12-9.3.0.75", "nvidia_cudnn_cu12-9.10.2.21"},
                        {"Version: 9.3.0.75", "Version: 9.10.2.21"},
                        {"550.54.15", "570.133.20"},
                        {"6.8.0-45-generic", "6.8.0-60-generic"}}));
  Told told = diff(a.root(), b.root());
  CHECK(told.status == 1);
  CHECK(told.json["same"] == false);
  CHECK(told.effect("package tensorflow") == "results, speed");
  CHECK(told.effect("library cuDNN") == "results, speed");
  CHECK(told.effect("driver") == "speed");
  CHECK(told.effect("kernel") == "speed");
  CHECK(told.effect("library cuBLAS") == "none");
  CHECK(told.place("package tensorflow") < told.place("library cuDNN"));
  CHECK(told.place("library cuDNN") < told.place("driver"));
  CHECK(told.place("driver") < told.place("kernel"));
  size_t results = told.text.find("Can change results"), speed = told.text.find("Can change speed");
  CHECK(told.text.find("package tensorflow: 2.20.0 -> 2.19.0") > results);
  CHECK(results < speed);
  CHECK(told.text.find("driver: 550.54.15 -> 570.133.20") > speed);
}

TEST_CASE("doctor diff: reports and manifests") {
  TreeOnDisk a(fixture("fx01-ok").files), b(fixture("fx24-torch-sm120").files);
  TempDir dir;
  for (auto [tree, name] : {std::pair<TreeOnDisk*, const char*>{&a, "a.json"}, {&b, "b.json"}}) {
    std::ostringstream out, err;
    doctor::doctor_main({"--root", tree->root(), "--json"}, out, err);
    dir.write(name, out.str());
  }
  // A report tells the same as the tree that it was made of.
  CHECK(diff(a.root(), dir.path("a.json")).json["differences"].empty());
  Told told = diff(dir.path("a.json"), dir.path("b.json"));
  CHECK(told.status == 1);
  CHECK(told.effect("GPU 0 capability") == "results, speed");
  CHECK(told.effect("GPU 0 model") == "results, speed");
  CHECK(told.effect("package torch") == "results, speed");
  // Manifests tell of seed, precision and settings.
  dir.write("m1.json", kManifest);
  std::string other = replaced(kManifest, "\"seed\": 7", "\"seed\": 8");
  other = replaced(replaced(other, "\"tf32\"", "\"highest\""), "\"9.3.0\"", "\"9.10.2\"");
  other = replaced(replaced(other, "\"abc123\"", "\"def456\""), "2026-11-30", "2026-12-01");
  dir.write("m2.json", other);
  told = diff(dir.path("m1.json"), dir.path("m2.json"));
  CHECK(told.status == 1);
  CHECK(told.json["differences"].size() == 4);
  CHECK(told.place("seed") == 0);
  CHECK(told.effect("seed") == "results");
  CHECK(told.place("precision") == 1);
  CHECK(told.place("commit of tracefire") == 2);
  CHECK(told.place("library cuDNN") == 3);
  CHECK(diff(dir.path("m1.json"), dir.path("m1.json")).status == 0);
  // A manifest against a tree: what both tell is compared, 9.3.0 is 9.3.0.75.
  told = diff(dir.path("m1.json"), a.root());
  CHECK(told.effect("driver") == "none");
  CHECK(told.effect("library cuDNN") == "none");
  CHECK(told.effect("GPU 0 capability") == "none");
  CHECK(told.effect("seed") == "none");
  told = diff(dir.path("m2.json"), b.root());
  CHECK(told.effect("driver") == "speed");
  // Keys that no table knows are compared all the same.
  dir.write("x.json", R"({"versions": {"tensorflow": "2.20.0"}, "foo": {"bar": 1}})");
  dir.write("y.json", R"({"manifest": {"versions": {"tensorflow": "2.19.0"}, "foo": {"bar": 2}}})");
  told = diff(dir.path("x.json"), dir.path("y.json"));
  CHECK(told.place("package tensorflow") == 0);
  CHECK(told.effect("foo.bar") == "neither");
}

TEST_CASE("doctor diff: a side that does not know is no difference") {
  TempDir dir;
  TreeOnDisk machine(fixture("fx01-ok").files), broken(fixture("fx12-driver-too-old").files);
  // An image has packages and no devices.
  Tree files = fixture("fx01-ok").files;
  std::erase_if(files, [](const auto& entry) {
    for (const char* begin :
         {"/proc/", "/sys/", "/dev/", "/captured/", "/usr/lib/x86_64-linux-gnu"})
      if (entry.first.rfind(begin, 0) == 0) return true;
    return false;
  });
  TreeOnDisk image(files);
  Told told = diff(machine.root(), image.root());
  for (const char* name : {"GPU 0 model", "GPU 0 capability", "GPU count", "driver", "verdict",
                           "faults", "device nodes"})
    CHECK_MESSAGE(told.effect(name) == "none", name);
  CHECK(told.status == 0);
  // A manifest that does not speak of GPUs, one that has none, one that knows the name alone.
  const auto manifest = [&](const char* name, const char* gpus) {
    dir.write(name, std::string("{\"schema\": \"tracefire.manifest/1\", \"seed\": 7") + gpus + "}");
    return dir.path(name);
  };
  CHECK(diff(machine.root(), manifest("silent.json", "")).effect("GPU 0 model") == "none");
  told = diff(machine.root(), manifest("none.json", ", \"gpus\": []"));
  CHECK(told.effect("GPU 0 model") == "results, speed");
  CHECK(told.effect("GPU count") == "speed");
  told = diff(machine.root(),
              manifest("name.json", ", \"gpus\": [{\"name\": \"NVIDIA GeForce RTX 3090\"}]"));
  CHECK(told.effect("GPU 0 capability") == "none");
  CHECK(told.effect("GPU 0 model") == "none");
  // Which faults there are is told.
  told = diff(machine.root(), broken.root());
  CHECK(told.effect("faults") == "results, speed");
  CHECK(told.text.find("faults: none -> driver-too-old") != std::string::npos);
}

TEST_CASE("doctor diff: documents of other schemas, too large, with too many keys") {
  TempDir dir;
  TreeOnDisk a(fixture("fx01-ok").files);
  const auto refused = [&](const std::string& text, const std::string& why) {
    dir.write("b.json", text);
    std::ostringstream out, err;
    CHECK(doctor::doctor_main({"diff", a.root(), dir.path("b.json")}, out, err) == 2);
    CHECK_MESSAGE(err.str().find(why) != std::string::npos, err.str());
  };
  refused(R"({"schema": "tracefire.prove/1", "verdict": "on-gpu"})", "holds no manifest");
  refused(R"({"schema": "tracefire.monitor/1", "gpus": [{"name": "x"}]})", "holds no manifest");
  refused(R"({"schema": "tracefire.doctor/2", "verdict": "gpu-ok"})", "tracefire.doctor/2");
  refused(R"({"schema": "tracefire.manifest/9", "seed": 1})", "tracefire.manifest/9");
  refused(R"({"schema": "tracefire.doctor/1", "verdict": "unknown"})", "without a result");
  refused("{\"a\": \"" + std::string(9 << 20, 'x') + "\"}", "larger than 8 MiB");
  // Brackets in texts hide no depth.
  refused("{\"a\": [" + std::string(300, '[') + "\"" + std::string(300, ']') + "\"",
          "neither a folder nor a JSON document");
  // A manifest in another document, and one with very many keys: an answer in short time.
  dir.write("in.json", R"({"schema": "tracefire.prove/1", "manifest": {"seed": 7}})");
  CHECK(diff(dir.path("in.json"), dir.path("in.json")).status == 0);
  std::string many = "{\"packages\": {";
  for (int i = 0; i < 200000; ++i) many += "\"p" + std::to_string(i) + "\": \"1\", ";
  dir.write("many.json", many + "\"z\": \"1\"}}");
  const auto begin = std::chrono::steady_clock::now();
  CHECK(diff(dir.path("many.json"), dir.path("many.json")).status == 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("doctor diff: a damaged field of a report or a manifest is named") {
  TempDir dir;
  TreeOnDisk a(fixture("fx23-cvd-minus-one").files);
  const auto refused = [&](const FixtureJson& document, const std::string& why) {
    dir.write("b.json", document.dump());
    std::ostringstream out, err;
    const int status = doctor::doctor_main({"diff", a.root(), dir.path("b.json")}, out, err);
    CHECK_MESSAGE(status == 2, why);
    CHECK_MESSAGE(err.str().find(why) != std::string::npos, why, ": ", err.str());
  };
  const FixtureJson report = ask_doctor(a.root(), {{"CUDA_VISIBLE_DEVICES", "-1"}}).report;
  const FixtureJson manifest = FixtureJson::parse(kManifest);
  for (const FixtureJson& whole : {report, manifest}) {
    dir.write("a.json", whole.dump());
    CHECK(diff(dir.path("a.json"), dir.path("a.json")).status == 0);
    // Each member at any depth, as a value that no field has.
    const FixtureJson flat = whole.flatten();
    for (const auto& entry : flat.items()) {
      FixtureJson damaged = whole;
      const std::string path = entry.key();
      if (path == "/schema") continue;
      damaged[FixtureJson::json_pointer(path)] = {{"x", 1.5}};
      std::string named;
      for (size_t i = 1; i < path.size(); ++i) {
        const bool number = path[i - 1] == '/' && path[i] >= '0' && path[i] <= '9';
        if (number) {
          named.back() = '[';
          while (i < path.size() && path[i] != '/') named += path[i++];
          named += ']';
          if (i < path.size()) named += '.';
        } else {
          named += path[i] == '/' ? '.' : path[i];
        }
      }
      refused(damaged, named + " is {");
    }
  }
  for (const char* name : {"verdict", "summary", "inventory", "findings"}) {
    FixtureJson damaged = report;
    damaged.erase(name);
    refused(damaged, std::string(name) + " is missing");
  }
  FixtureJson damaged = report;
  damaged["verdict"] = "fine";
  refused(damaged, "verdict is \"fine\"; expected one of gpu-ok, gpu-broken");
  damaged = report;
  damaged["findings"][0]["severity"] = "fatal";
  refused(damaged, "findings[0].severity is \"fatal\"; expected one of error, warning, info");
  damaged = manifest;
  damaged["precision"] = "fp8";
  refused(damaged, "precision is \"fp8\"");
  damaged = manifest;
  damaged["gpus"][0]["memory_bytes"] = -1;
  refused(damaged, "gpus[0].memory_bytes is -1; expected a whole number");
}

TEST_CASE("doctor diff: what cannot be compared is wrong usage") {
  TreeOnDisk a(fixture("fx01-ok").files);
  TempDir dir;
  dir.write("bad.json", "{\"schema\": ");
  dir.write("deep.json", std::string(100000, '['));
  dir.write("list.json", "[1, 2]");
  for (const std::string& other : {dir.path("bad.json"), dir.path("deep.json"),
                                   dir.path("list.json"), dir.path("none"), std::string("")}) {
    std::ostringstream out, err;
    std::vector<std::string> arguments = {"diff", a.root()};
    if (!other.empty()) arguments.push_back(other);
    arguments.push_back("--json");
    CHECK(doctor::doctor_main(arguments, out, err) == 2);
    CHECK(FixtureJson::parse(out.str()).at("schema") == "tracefire.doctor.diff/1");
  }
  // Text from outside is made safe.
  dir.write("evil.json", "{\"packages\": {\"\\u001b[31mx\": \"\\u001b]0;pwn\\u0007\"}}");
  Told told = diff(dir.path("evil.json"), a.root());
  CHECK(told.text.find('\x1b') == std::string::npos);
}

TEST_CASE("doctor: depth that texts hide ends no reader of JSON") {
  std::string hidden;
  for (int i = 0; i < 300000; ++i) hidden += "[\"]\",";
  CHECK(doctor::parse_conda_meta(hidden + "1").name.empty());
  CHECK(doctor::parse_kernel_argv("{\"argv\": " + hidden + "1").empty());
  CHECK_FALSE(doctor::parse_document("{\"manifest\": " + hidden + "1").has_value());
  std::string closed = "{\"manifest\": {\"a\": " + hidden + "1" + std::string(300000, ']') + "}}";
  CHECK_FALSE(doctor::parse_document(closed).has_value());
  CHECK(doctor::parse_conda_meta("{\"name\": \"a[[[\", \"version\": \"1\"}").name == "a[[[");
}

}  // namespace tracefire::test
