// SPDX-License-Identifier: Apache-2.0
//
// Trees, logs and arguments that mean harm: always an answer, never a crash, nothing from outside
// the tree, nothing changed.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "doctor/fixture.h"
#include "support/skip.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/root.h"

namespace tracefire::test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSite = "/opt/venv/lib/python3.11/site-packages";

int run(const std::vector<std::string>& arguments, std::string* text) {
  std::ostringstream out, err;
  int status = doctor::doctor_main(arguments, out, err);
  *text = out.str() + err.str();
  return status;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("doctor: links stay inside the tree") {
  Tree secret;
  secret["/secret"] = "the secret";
  TreeOnDisk outside(secret);
  Tree files;
  files["/etc/passwd"] = "inside";
  for (const auto& [path, target] :
       std::map<std::string, std::string>{{"/abs", "/etc/passwd"},
                                          {"/up", "../../../../../../etc/passwd"},
                                          {"/loop", "loop2"},
                                          {"/loop2", "loop"},
                                          {"/out", outside.root() + "/secret"}})
    files[path]["symlink"] = target;
  TreeOnDisk tree(files);
  doctor::Root root(tree.root());
  CHECK(root.read("/abs") == "inside");
  CHECK(root.read("/up") == "inside");
  CHECK_FALSE(root.read("/loop").has_value());
  CHECK_FALSE(root.read("/out").has_value());
  CHECK(root.read("/../../../etc/passwd") == "inside");
  CHECK(root.follow("/abs") == "/etc/passwd");
  CHECK(root.follow("/loop").size() < 10);
}

TEST_CASE("doctor: hostile trees get an answer") {
  Tree files = fixture("fx01-ok").files;
  files[std::string(kSite) + "/tensorflow-2.20.0.dist-info/METADATA"] =
      "Name: tensorflow\nVersion: 2.20.0\n" + std::string(3 << 20, 'x');
  files[std::string(kSite) + "/evil-1.dist-info/METADATA"] =
      std::string("Name: evil\nVersion: \x1b]0;pwn\x07<script>\n") + std::string(1000, '\0');
  files["/opt/venv/loop"]["symlink"] = ".";
  files["/opt/more"]["symlink"] = "/opt";
  files[std::string(kSite) + "/tensorflow/libtensorflow_cc.so.2"] =
      "\177ELF" + std::string(40, '\1');
  files["/etc/ld.so.cache"] = "glibc-ld.so.cache1.1" + std::string(100, '\377');
  files["/captured/nvidia-smi-q.txt"] = std::string(100000, ' ') + ":\n" + std::string(50000, '\n');
  TreeOnDisk tree(files);
  fs::create_directories(tree.root() + kSite + "/folder-1.dist-info/METADATA");
  REQUIRE(::mkfifo((tree.root() + "/etc/prime-discrete").c_str(), 0600) == 0);
  std::string bad = tree.root() + kSite + "/\xff\xfe-1.dist-info";
  fs::create_directories(bad);
  auto begin = std::chrono::steady_clock::now();
  Answer answer = ask_doctor(tree.root());
  CHECK(seconds_since(begin) < 5);
  CHECK(answer.verdict() == "gpu-ok");
  CHECK(answer.text.find('\x1b') == std::string::npos);
  CHECK(answer.text.find("only the first") != std::string::npos);
  std::string html;
  CHECK(run({"--root", tree.root(), "--html"}, &html) == 0);
  CHECK(html.find("<script>") == std::string::npos);
}

TEST_CASE("doctor: a file that may not be read is named") {
  if (::geteuid() == 0) return skip("root may read everything");
  TreeOnDisk tree(fixture("fx01-ok").files);
  std::string path = "/proc/driver/nvidia/version";
  ::chmod((tree.root() + path).c_str(), 0);
  CHECK(ask_doctor(tree.root()).text.find(path + " could not be read") != std::string::npos);
}

TEST_CASE("doctor: a log of a gigabyte takes no longer") {
  TreeOnDisk tree(fixture("fx01-ok").files);
  std::string log = tree.root() + "/big.log";
  std::ofstream(log) << "first line\n";
  REQUIRE(::truncate(log.c_str(), 1l << 30) == 0);
  std::ofstream(log, std::ios::app)
      << "\nLoaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0.\n";
  auto begin = std::chrono::steady_clock::now();
  Answer answer = ask_doctor(tree.root(), {}, {"--log", log});
  CHECK(seconds_since(begin) < 5);
  CHECK(answer.faults == std::vector<std::string>{"cudnn-minor"});
}

TEST_CASE("doctor: stdout is one object, also for wrong arguments") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--json", "--nonsense"},
                                             {"--nonsense", "--json"},
                                             {"--root", "/does/not/exist", "--json"},
                                             {"--json", "--env", "novalue"},
                                             {"--json", "--framework", "caffe"}}) {
    std::ostringstream out, err;
    CHECK(doctor::doctor_main(arguments, out, err) == 2);
    CHECK(FixtureJson::parse(out.str()).at("schema") == "tracefire.doctor/1");
    CHECK(err.str().empty());
  }
}

TEST_CASE("doctor: reports are private and without secrets") {
  Tree files = fixture("fx24-torch-sm120").files;
  files["/captured/framework.log"] =
      "token=abcdef no kernel image is available for execution on the device hf_aaaaaaaaaaaaaaaa\n";
  TreeOnDisk tree(files);
  std::string file = tree.root() + "/report.html", text;
  CHECK(run({"--root", tree.root(), "--html", "--output", file, "--env", "SECRET_THING=xyzzy",
             "--env", "CUDA_VISIBLE_DEVICES=0"},
            &text) == 1);
  struct stat st {};
  REQUIRE(::stat(file.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  std::ifstream in(file);
  std::stringstream all;
  all << in.rdbuf();
  CHECK(all.str().find("CUDA_VISIBLE_DEVICES=0") != std::string::npos);
  CHECK(all.str().find("xyzzy") == std::string::npos);
  CHECK(all.str().find("abcdef") == std::string::npos);
  CHECK(all.str().find("hf_aaaa") == std::string::npos);
  fs::create_symlink("/etc/hostname", tree.root() + "/link");
  CHECK(run({"--root", tree.root(), "--output", tree.root() + "/link"}, &text) == 2);
}

TEST_CASE("doctor: every sentence of the text is in the JSON") {
  TreeOnDisk tree(fixture("fx10-ldpath-shadow").files);
  std::map<std::string, std::string> env = fixture("fx10-ldpath-shadow").env;
  std::string text;
  run({"--root", tree.root(), "--env", "LD_LIBRARY_PATH=" + env["LD_LIBRARY_PATH"]}, &text);
  FixtureJson report = ask_doctor(tree.root(), env).report;
  std::string all =
      report["summary"].get<std::string>() + "\n" + report["verdict"].get<std::string>() + "\n";
  for (const auto& line : report["inventory"]) all += line.get<std::string>() + "\n";
  for (const auto& finding : report["findings"]) {
    for (const auto& line : finding["evidence"]) all += line.get<std::string>() + "\n";
    all += finding["fix"].get<std::string>() + "\n";
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line.find(". ") == std::string::npos) continue;
    CHECK_MESSAGE(all.find(line.substr(begin)) != std::string::npos, line);
  }
}

TEST_CASE("doctor: the tree is left as it was") {
  TreeOnDisk tree(fixture("fx01-ok").files);
  auto listing = [&] {
    std::string out;
    for (const auto& entry : fs::recursive_directory_iterator(tree.root()))
      out += entry.path().string() + " " +
             (entry.is_regular_file() && !entry.is_symlink() ? std::to_string(entry.file_size())
                                                             : "") +
             "\n";
    return out;
  };
  std::string before = listing();
  ask_doctor(tree.root());
  CHECK(listing() == before);
}

TEST_CASE("doctor: one environment, one framework") {
  const Fixture& two = fixture("own-two-envs");
  TreeOnDisk tree(two.files);
  CHECK(ask_doctor(tree.root(), {}, {"--python", "/opt/venv/bin/python"}).verdict() == "gpu-ok");
  CHECK(ask_doctor(tree.root(), {}, {"--python", "/opt/second"}).verdict() == "cpu-only");
  std::string text;
  CHECK(run({"--root", tree.root(), "--python", "/nowhere/bin/python"}, &text) == 2);
}

TEST_CASE("doctor plan: what fits before it is installed") {
  std::string text;
  TreeOnDisk ampere(fixture("fx01-ok").files), volta(fixture("fx26-torch-volta-cu130").files),
      blackwell(fixture("fx24-torch-sm120").files), old(fixture("fx12-driver-too-old").files),
      python(fixture("fx33-python314").files);
  CHECK(run({"plan", "--root", ampere.root(), "--framework", "tensorflow==2.21"}, &text) == 0);
  CHECK(text.find("tensorflow[and-cuda]==2.21") != std::string::npos);
  CHECK(run({"plan", "--root", volta.root(), "--framework", "torch==2.11"}, &text) == 1);
  CHECK(text.find("cu12") != std::string::npos);
  CHECK(run({"plan", "--root", blackwell.root(), "--framework", "tensorflow"}, &text) == 1);
  CHECK(text.find("NGC") != std::string::npos);
  CHECK(run({"plan", "--root", old.root(), "--framework", "tensorflow==2.21"}, &text) == 1);
  CHECK(text.find("525.60.13") != std::string::npos);
  CHECK(run({"plan", "--root", python.root(), "--framework", "tensorflow==2.21"}, &text) == 4);
  CHECK(text.find("3.10-3.13") != std::string::npos);
  CHECK(run({"plan", "--root", ampere.root()}, &text) == 2);
  // A version that the tables cannot know is said to be one, and recommends nothing of its own.
  for (const char* release : {"abc", "-1", "0.1", "0.0.0.0.0", "..", "999999999999999999999"})
    for (const char* name : {"tensorflow", "torch", "jax", "keras"}) {
      const std::string asked = std::string(name) + "==" + release;
      const int status =
          run({"plan", "--root", ampere.root(), "--framework", asked, "--json"}, &text);
      CHECK_MESSAGE((status == 2 || status == 4), asked);
      const char* words = status == 2 ? "is no version" : "is an unknown release";
      CHECK_MESSAGE(text.find(words) != text.npos, asked);
      CHECK_MESSAGE(text.find("install \\\"" + asked) == text.npos, asked);
    }
}

}  // namespace tracefire::test
