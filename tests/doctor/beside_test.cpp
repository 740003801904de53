// SPDX-License-Identifier: Apache-2.0
//
// Frameworks beside each other in one environment: what `doctor plan` says before a second one is
// installed, and what the doctor says of two that are there.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "doctor/fixture.h"
#include "tools/doctor/doctor.h"

namespace tracefire::test {

namespace {

const std::string kSite = "/opt/venv/lib/python3.11/site-packages/";

void add_dist(Tree* tree, const std::string& name, const std::string& version,
              const std::string& more = "", const std::string& record = "") {
  std::string folder = name;
  for (char& c : folder) c = c == '-' ? '_' : c;
  folder = kSite + folder + "-" + version + ".dist-info/";
  (*tree)[folder + "METADATA"] =
      "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n" + more;
  (*tree)[folder + "RECORD"] = record;
}

/// A machine with an RTX 3090 and driver 580, and an empty environment on Python 3.11.
Tree machine() {
  Tree tree = fixture("fx09-cudnn-major").files;
  std::erase_if(tree, [](const auto& entry) {
    return entry.first.rfind(kSite, 0) == 0 || entry.first.rfind("/captured/framework", 0) == 0;
  });
  return tree;
}

/// CUDA 12's libraries but cuDNN.
void add_libraries(Tree* tree) {
  const FixtureJson empty = {{"empty", true}};
  for (const char* path :
       {"cuda_runtime/lib/libcudart.so.12", "cublas/lib/libcublas.so.12",
        "cublas/lib/libcublasLt.so.12", "cufft/lib/libcufft.so.11", "curand/lib/libcurand.so.10",
        "cusolver/lib/libcusolver.so.11", "cusparse/lib/libcusparse.so.12", "nccl/lib/libnccl.so.2",
        "cuda_cupti/lib/libcupti.so.12", "cuda_nvcc/bin/ptxas",
        "cuda_nvcc/nvvm/libdevice/libdevice.10.bc"})
    (*tree)[kSite + "nvidia/" + path] = empty;
}

/// "torch 2.6.0": installed as pip leaves it, with the cuDNN that it asks for.
void add_framework(Tree* tree, const std::string& what) {
  const size_t space = what.find(' ');
  const std::string id = what.substr(0, space), version = what.substr(space + 1);
  const FixtureJson empty = {{"empty", true}};
  auto cudnn = [&](const std::string& package, const std::string& release) {
    add_dist(tree, package, release, "", "nvidia/cudnn/lib/libcudnn.so.9,,\n");
    (*tree)[kSite + "nvidia/cudnn/lib/libcudnn.so." + release.substr(0, 1)] = empty;
  };
  if (id == "torch") {
    const std::map<std::string, std::pair<std::string, std::string>> pins = {
        {"2.3.1", {"12.1", "8.9.2.26"}},   {"2.6.0", {"12.4", "9.1.0.70"}},
        {"2.7.0", {"12.6", "9.5.1.17"}},   {"2.8.0", {"12.8", "9.10.2.21"}},
        {"2.10.0", {"12.8", "9.10.2.21"}}, {"2.11.0", {"13.0", "9.19.0.56"}}};
    const auto& [cuda, pin] = pins.at(version);
    const std::string package = "nvidia-cudnn-cu" + cuda.substr(0, 2);
    add_dist(tree, "torch", version, "Requires-Dist: " + package + "==" + pin + "\n");
    (*tree)[kSite + "torch/version.py"] =
        "__version__ = '" + version + "'\ncuda = '" + cuda + "'\n";
    cudnn(package, pin);
  }
  if (id == "tensorflow") {
    const std::map<std::string, std::string> cudnns = {
        {"2.17.0", "8.9.7.29"}, {"2.18.0", "9.3.0.75"}, {"2.20.0", "9.3.0.75"}};
    add_dist(tree, "tensorflow", version);
    (*tree)[kSite + "tensorflow/python/platform/build_info.py"] =
        "build_info = {'cuda_version': '12.5.1', 'is_cuda_build': True}\n";
    cudnn("nvidia-cudnn-cu12", cudnns.at(version));
  }
  if (id == "jax" || id == "jax13") {
    const std::string major = id == "jax" ? "12" : "13";
    for (const std::string& name : {std::string("jax"), std::string("jaxlib"),
                                    "jax-cuda" + major + "-plugin", "jax-cuda" + major + "-pjrt"})
      add_dist(tree, name, version);
    cudnn("nvidia-cudnn-cu" + major, major == "12" ? "9.10.2.21" : "9.12.0.46");
  }
}

struct Planned {
  int status = -1;
  std::string text, fix;
  std::vector<std::string> faults;
};

Planned plan(const Tree& files, const std::string& asked) {
  TreeOnDisk tree(files);
  std::ostringstream out, err;
  Planned planned;
  planned.status = doctor::doctor_main(
      {"plan", "--root", tree.root(), "--framework", asked, "--json"}, out, err);
  planned.text = out.str();
  const FixtureJson json = FixtureJson::parse(planned.text);
  for (const auto& finding : json.at("findings")) {
    if (finding.at("severity") != "info") planned.faults.push_back(finding.at("kind"));
    if (finding.at("kind") == "plan") planned.fix = finding.at("fix").get<std::string>();
  }
  return planned;
}

struct Row {
  std::string there, asked;
  bool fits;
  std::string says, command;
};

}  // namespace

TEST_CASE("doctor plan: what the frameworks of the environment pin is seen") {
  const std::string own = "-m venv ~/";
  for (const Row& row : std::vector<Row>{
           // PyTorch's pin against what TensorFlow needs.
           {"torch 2.6.0", "tensorflow==2.18", false, "pins nvidia-cudnn-cu12==9.1.0.70",
            "~/tensorflow-env/bin/python -m pip install \"tensorflow[and-cuda]==2.18.1\""},
           {"torch 2.6.0", "tensorflow==2.19", false, "cannot share /opt/venv", own},
           {"torch 2.6.0", "tensorflow==2.21", false, "needs nvidia-cudnn-cu12>=9.3,<10", own},
           {"torch 2.6.0", "tensorflow", false, "cannot share", "tensorflow[and-cuda]==2.21.0"},
           {"torch 2.6.0", "tensorflow>=2.18", false, "cannot share", own},
           {"torch 2.7.0", "tensorflow==2.20", true, "fits", "tensorflow[and-cuda]==2.20.0"},
           {"torch 2.8.0", "tensorflow==2.21", true, "fits", "tensorflow[and-cuda]==2.21.0"},
           {"torch 2.10.0", "tensorflow", true, "TensorFlow 2.21.0 fits", "==2.21.0"},
           // The extra of 2.18 would put its own cuDNN in the place of PyTorch's.
           {"torch 2.8.0", "tensorflow==2.18", true, "fits",
            "\"tensorflow==2.18.1\" nvidia-cuda-nvcc-cu12"},
           {"torch 2.8.0", "tensorflow==2.17", false, "nvidia-cudnn-cu12>=8.9,<9", own},
           {"torch 2.11.0", "tensorflow==2.21", false, "own the same files", own},
           // Against JAX.
           {"torch 2.7.0", "jax==0.6.2", false, "needs nvidia-cudnn-cu12>=9.8,<10", own},
           {"torch 2.6.0", "jax==0.6.0", false, "pins nvidia-cudnn-cu12==9.1.0.70", own},
           {"torch 2.8.0", "jax==0.6.2", true, "fits", "jax[cuda12]==0.6.2"},
           {"torch 2.6.0", "jax", true, "JAX 0.5.3 (cuda12) fits", "jax[cuda12]==0.5.3"},
           {"torch 2.11.0", "jax", true, "(cuda13) fits", "jax[cuda13]"},
           {"torch 2.11.0", "jax[cuda12]", false, "own the same files", own},
           {"jax 0.6.2", "torch==2.7", false, "pins nvidia-cudnn-cu12==9.5.1.17", own},
           {"jax 0.6.2", "torch==2.8", true, "fits", "torch==2.8.0"},
           {"jax13 0.8.0", "torch==2.11", true, "fits", "torch==2.11.0"},
           {"jax13 0.8.0", "tensorflow==2.21", false, "own the same files", own},
           {"jax 0.6.2", "tensorflow==2.21", true, "fits", "==2.21.0"},
           // Against TensorFlow.
           {"tensorflow 2.18.0", "torch==2.6", false, "needs nvidia-cudnn-cu12>=9.3,<10", own},
           {"tensorflow 2.20.0", "torch==2.9", true, "fits", "torch==2.9.1"},
           {"tensorflow 2.20.0", "torch==2.11", false, "Another build of it fits", "whl/cu126"},
           {"tensorflow 2.20.0", "jax==0.6.2", true, "fits", "jax[cuda12]==0.6.2"},
           // A framework replaces itself; Keras brings its back end.
           {"torch 2.6.0", "torch==2.8", true, "fits", "torch==2.8.0"},
           {"torch 2.6.0", "keras[jax]", true, "fits", "keras"}}) {
    CAPTURE(row.there);
    CAPTURE(row.asked);
    Tree files = machine();
    add_framework(&files, row.there);
    const Planned planned = plan(files, row.asked);
    CHECK(planned.status == (row.fits ? 0 : 4));
    CHECK_MESSAGE(planned.faults == (row.fits ? std::vector<std::string>()
                                              : std::vector<std::string>{"two-frameworks"}),
                  planned.text);
    CHECK_MESSAGE(planned.text.find(row.says) != std::string::npos, planned.text);
    CHECK_MESSAGE(planned.fix.find(row.command) != std::string::npos, planned.fix);
    // An environment of its own is for what does not fit alone.
    if (!row.fits && row.command == own)
      CHECK_MESSAGE(planned.fix.find(own) != std::string::npos, planned.fix);
  }
}

TEST_CASE("doctor: the cure of one framework does not break the one beside it") {
  // TensorFlow 2.17 came last and put cuDNN 8 in the place of PyTorch's 9.
  Tree files = machine();
  add_libraries(&files);
  add_framework(&files, "torch 2.6.0");
  for (const char* path :
       {"nvidia_cudnn_cu12-9.1.0.70.dist-info/METADATA",
        "nvidia_cudnn_cu12-9.1.0.70.dist-info/RECORD", "nvidia/cudnn/lib/libcudnn.so.9"})
    files.erase(kSite + path);
  add_framework(&files, "tensorflow 2.17.0");
  {
    TreeOnDisk tree(files);
    const Answer answer = ask_doctor(tree.root(), {}, {"--framework", "torch"});
    CHECK_MESSAGE(std::count(answer.faults.begin(), answer.faults.end(), "two-frameworks") == 1,
                  answer.text);
    for (const auto& finding : answer.report["findings"])
      if (finding["severity"] != "info" && finding["kind"] == "cudnn-major")
        CHECK_MESSAGE(finding["fix"].get<std::string>().find("torch-env") != std::string::npos,
                      answer.text);
    CHECK(answer.verdict() == "gpu-broken");
  }
  // TensorFlow 2.17 beside PyTorch's cuDNN 9: it computes on the CPU, and PyTorch is well.
  files = machine();
  add_libraries(&files);
  add_framework(&files, "tensorflow 2.17.0");
  for (const char* path :
       {"nvidia_cudnn_cu12-8.9.7.29.dist-info/METADATA",
        "nvidia_cudnn_cu12-8.9.7.29.dist-info/RECORD", "nvidia/cudnn/lib/libcudnn.so.8"})
    files.erase(kSite + path);
  add_framework(&files, "torch 2.6.0");
  {
    TreeOnDisk tree(files);
    const Answer answer = ask_doctor(tree.root());
    for (const auto& finding : answer.report["findings"])
      if (finding["severity"] != "info" &&
          (finding["kind"] == "cudnn-major" || finding["kind"] == "two-frameworks"))
        CHECK_MESSAGE(finding["fix"].get<std::string>().find("tensorflow-env") != std::string::npos,
                      answer.text);
  }
}

TEST_CASE("doctor: a cuDNN that fits all frameworks is named where there is one") {
  Tree files = machine();
  add_libraries(&files);
  add_framework(&files, "torch 2.8.0");
  add_framework(&files, "jax 0.6.2");
  // Somebody put an older one there, which suits neither.
  for (const char* path : {"nvidia_cudnn_cu12-9.10.2.21.dist-info/METADATA",
                           "nvidia_cudnn_cu12-9.10.2.21.dist-info/RECORD"})
    files.erase(kSite + path);
  add_dist(&files, "nvidia-cudnn-cu12", "9.1.0.70", "", "nvidia/cudnn/lib/libcudnn.so.9,,\n");
  TreeOnDisk tree(files);
  const Answer answer = ask_doctor(tree.root(), {}, {"--framework", "jax"});
  CHECK_MESSAGE(answer.faults == std::vector<std::string>{"cudnn-minor"}, answer.text);
  CHECK_MESSAGE(answer.fix.find("\"nvidia-cudnn-cu12==9.10.2.21\"") != std::string::npos,
                answer.fix);
}

}  // namespace tracefire::test
