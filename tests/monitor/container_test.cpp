// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/monitor/sample/process_info.h"

namespace tracefire::monitor {
namespace {

const std::string kId = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f809";

/// A tree with /proc/7 in it.
class Root {
 public:
  Root() {
    char name[] = "/tmp/tracefire_proc_XXXXXX";
    path = mkdtemp(name);
    write("proc/7/stat", "7 (a) b (c) S 1 1 1 0 -1 0 0 0 12 0 100 50 0 0 20 0 1 0 4242 0 0\n");
    write("proc/7/status", "Name:\ta\nUid:\t1000\t1000\nVmRSS:\t 2048 kB\nVmSwap:\t 16 kB\n");
    write("proc/7/cmdline", std::string("python3\0train.py\0", 17));
    write("etc/passwd", "root:x:0:0::/:/bin/sh\nada:x:1000:1000::/:/bin/sh\n");
  }
  ~Root() { std::filesystem::remove_all(path); }
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path full = path + "/" + file;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << text;
  }
  std::string path;
};

}  // namespace

TEST_CASE("monitor: containers by their control group") {
  const std::string pod = "6f1f2a3b-1111-2222-3333-444455556666";
  CHECK(container_of("0::/user.slice/user-0.slice/session-1.scope\n") == "");
  CHECK(container_of("0::/\n") == "");
  CHECK(container_of("12:cpu:/docker/" + kId + "\n") == "docker:1a2b3c4d5e6f");
  CHECK(container_of("0::/system.slice/docker-" + kId + ".scope\n") == "docker:1a2b3c4d5e6f");
  CHECK(container_of("0::/machine.slice/libpod-" + kId + ".scope/container\n") ==
        "podman:1a2b3c4d5e6f");
  CHECK(container_of("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
                     "pod6f1f2a3b_1111_2222_3333_444455556666.slice/cri-containerd-" +
                     kId + ".scope\n") == "k8s:" + pod);
  CHECK(container_of("3:memory:/kubepods/besteffort/pod" + pod + "/" + kId + "\n") == "k8s:" + pod);
  CHECK(container_of("0::/system.slice/cri-containerd-" + kId + ".scope\n") ==
        "containerd:1a2b3c4d5e6f");
  CHECK(container_of("0::/../" + kId + "\n") == "container:1a2b3c4d5e6f");
  CHECK(container_of("9:memory:/slurm/uid_1000/job_815/step_0\n") == "slurm:job_815");
  CHECK(container_of("0::/lxc.payload.box/init.scope\n") == "lxc:box");
  // 63 and 65 digits are no number of a container.
  CHECK(container_of("0::/docker/" + kId.substr(1)) == "");
  CHECK(container_of("0::/docker/" + kId + "0") == "");
}

TEST_CASE("monitor: a process as /proc shows it") {
  const Root root;
  root.write("proc/7/cgroup", "0::/system.slice/docker-" + kId + ".scope\n");
  ProcessReader reader(root.path);
  reader.begin_sample();
  HostProcess p = reader.read(7);
  CHECK(p.name == "a) b (c");
  CHECK(p.command == "python3 train.py");
  CHECK(p.user == "ada");
  CHECK(p.container == "docker:1a2b3c4d5e6f");
  CHECK(p.resident_bytes.value == 2048 * 1024);
  CHECK(p.swapped_bytes.value == 16 * 1024);
  CHECK(p.started == 4242);
  CHECK(p.cores.code == Reading::kNotReady);
  reader.end_sample();

  // One second of both times at 100 ticks a second, in at least 0.2 s.
  usleep(200'000);
  root.write("proc/7/stat", "7 (a) R 1 1 1 0 -1 0 0 0 1012 0 110 60 0 0 20 0 1 0 4242 0 0\n");
  reader.begin_sample();
  p = reader.read(7);
  CHECK(p.name == "a");
  REQUIRE(p.cores.ok());
  CHECK(p.cores.value > 0.05);
  CHECK(p.cores.value <= 1.0);
  CHECK(p.major_faults.value > 10);
  CHECK(p.children_cores.value == 0);
  reader.end_sample();

  // Two children that ran for half a second together, and one that is gone.
  root.write("proc/7/task/7/children", "8 9 10 ");
  root.write("proc/8/stat", "8 (w) R 7 1 1 0 -1 0 0 0 0 0 20 5 0 0 20 0 1 0 4300 0 0\n");
  root.write("proc/9/stat", "9 (w) R 7 1 1 0 -1 0 0 0 0 0 20 5 0 0 20 0 1 0 4300 0 0\n");
  usleep(200'000);
  reader.begin_sample();
  p = reader.read(7);
  CHECK(p.children_cores.value > 0.02);
  CHECK(p.children_cores.value <= 2.5);
  reader.end_sample();

  // Another process with the same number is not the old one.
  root.write("proc/7/stat", "7 (b) R 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9999 0 0\n");
  root.write("proc/7/cgroup", "0::/\n");
  reader.begin_sample();
  p = reader.read(7);
  CHECK(p.container == "");
  CHECK(p.cores.code == Reading::kNotReady);
  reader.end_sample();
}

TEST_CASE("monitor: names of containers where their runtime tells them") {
  const Root root;
  root.write("proc/7/cgroup", "0::/system.slice/docker-" + kId + ".scope\n");
  root.write("var/lib/docker/containers/" + kId + "/config.v2.json", R"({"Name":"/trainer"})");
  ProcessReader docker(root.path);
  docker.begin_sample();
  CHECK(docker.read(7).container == "docker:trainer");

  root.write("proc/7/cgroup", "0::/kubepods/pod6f1f2a3b-1111-2222-3333-444455556666/" + kId + "\n");
  root.write("proc/7/environ", std::string("A=1\0HOSTNAME=train-0\0", 21));
  ProcessReader pod(root.path);
  pod.begin_sample();
  CHECK(pod.read(7).container == "k8s:train-0");

  root.write("proc/7/cgroup", "0::/user.slice\n");
  root.write("proc/7/root/.singularity.d/runscript", "");
  root.write("proc/7/environ", std::string("APPTAINER_NAME=pytorch.sif\0", 27));
  ProcessReader apptainer(root.path);
  apptainer.begin_sample();
  CHECK(apptainer.read(7).container == "apptainer:pytorch.sif");
}

TEST_CASE("monitor: processes that are gone or broken") {
  const Root root;
  ProcessReader reader(root.path);
  reader.begin_sample();
  CHECK(reader.read(8).gone);
  for (const char* stat : {"", "7", "7 (", "7 )x(", "7 (a) S 1 2", "\xff\xff"}) {
    root.write("proc/7/stat", stat);
    CHECK(reader.read(7).gone);
  }
  root.write("proc/7/stat", "7 (a) S 1 1 1 0 -1 0 0 0 x 0 y z 0 0 20 0 1 0 q 0 0\n");
  CHECK_FALSE(reader.read(7).gone);
}

}  // namespace tracefire::monitor
