// SPDX-License-Identifier: Apache-2.0
//
// Databases of package managers, kernel logs of many starts, and what processes have loaded.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "doctor/fixture.h"
#include "support/paths.h"
#include "tools/doctor/read/system_packages.h"

namespace tracefire::test {

namespace {

using doctor::SystemPackage;

doctor::ReadAt reader(const std::string& bytes) {
  return [&bytes](uint64_t at, size_t size) {
    return at >= bytes.size() ? std::string() : bytes.substr(static_cast<size_t>(at), size);
  };
}

std::string big(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}
std::string little(uint32_t value) {
  std::string text = big(value);
  return {text[3], text[2], text[1], text[0]};
}

/// An rpm header with name, version and release.
std::string header(const std::string& name, const std::string& version) {
  std::string data = name + '\0' + version + '\0' + "1.el9" + '\0', out = big(3);
  out += big(static_cast<uint32_t>(data.size()));
  uint32_t at = 0;
  for (auto [tag, text] :
       {std::pair<uint32_t, std::string>{1000, name}, {1001, version}, {1002, "1.el9"}}) {
    out += big(tag) + big(6) + big(at) + big(1);
    at += static_cast<uint32_t>(text.size()) + 1;
  }
  return out + data;
}

bool mentions(const Answer& answer, const std::string& text) {
  return answer.text.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("doctor: packages of pacman, apk and rpm") {
  std::map<std::string, SystemPackage> out;
  doctor::add_pacman_folder("nvidia-utils-550.54.14-1", &out);
  doctor::add_pacman_folder("nvidia-open-dkms-3:580.95.05-2", &out);
  doctor::add_pacman_folder("bash-5.2.026-2", &out);
  doctor::add_pacman_folder("nvidia", &out);
  doctor::add_apk_installed("P:musl\nV:1.2.5-r0\n\nP:docker\nV:26.1.3-r1\n", &out);
  doctor::add_rpm_lines("nvidia-driver-cuda-libs-3:535.183.01-1.el9.x86_64\ngarbage\n-\n--\n",
                        &out);
  CHECK(out.size() == 4);
  CHECK(out["nvidia-utils"].version == "550.54.14");
  CHECK(out["nvidia-open-dkms"].version == "580.95.05");
  CHECK(out["docker"].version == "26.1.3");
  CHECK(out["nvidia-driver-cuda-libs"].version == "535.183.01");
}

TEST_CASE("doctor: rpm's databases") {
  std::string bytes;
  doctor::ReadAt read = reader(bytes);
  {
    std::ifstream in(data_file("doctor/rpmdb.sqlite"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  REQUIRE(bytes.size() > 10000);
  std::map<std::string, SystemPackage> out;
  CHECK(doctor::add_rpm_database(read, &out).empty());
  CHECK(out.size() == 7);
  CHECK(out["nvidia-driver-cuda-libs"].version == "550.54.15");
  CHECK(out["nvidia-container-toolkit"].version == "1.15.0");
  CHECK(out["libcudnn9-cuda-12"].version == "9.3.0.75");
  // Cut off, and with pages that lead in circles: an answer, whatever it is.
  const std::string whole = bytes;
  for (size_t cut : {0, 50, 100, 600, 5000}) {
    bytes = whole.substr(0, cut);
    out.clear();
    CHECK_FALSE(doctor::add_rpm_database(read, &out).empty());
  }
  bytes = whole;
  for (size_t at = 512; at + 12 < bytes.size(); at += 512)
    if (bytes[at] == 5) std::memcpy(&bytes[at + 8], "\0\0\0\2", 4);
  doctor::add_rpm_database(read, &out);
  // SUSE's own format: a page of slots, then the headers.
  bytes = "RpmP" + little(0) + little(1) + little(1) + std::string(16, '\0');
  bytes += "Slot" + little(7) + little(256) + little(10);
  bytes.resize(4096, '\0');
  bytes += "BlbS" + little(7) + little(1) + little(100) + header("nvidia-video-G06", "550.54.14");
  out.clear();
  CHECK(doctor::add_rpm_database(read, &out).empty());
  CHECK(out["nvidia-video-G06"].version == "550.54.14");
  bytes = std::string("\0\0\0\0\1\0\0\0\0\0\0\0\x61\x15\6\0", 16);  // Berkeley DB
  CHECK(doctor::add_rpm_database(read, &out).find("rpm -qa") != std::string::npos);
}

TEST_CASE("doctor: packages decide as those of dpkg do") {
  // The fabric manager of another version than the driver, told by each manager.
  for (const auto& row : std::vector<std::pair<std::string, std::string>>{
           {"/captured/rpm-qa.txt", "nvidia-fabric-manager-550.90.07-1.x86_64\n"},
           {"/captured/pacman-Q.txt", "nvidia-fabricmanager 550.90.07-1\n"},
           {"/var/lib/pacman/local/nvidia-fabricmanager-550.90.07-1/desc", "%NAME%\n"},
           {"/var/lib/dpkg/status",
            "Package: nvidia-fabricmanager-550\nStatus: install ok installed\nVersion: "
            "550.90.07-1\n\n"}}) {
    Tree files = fixture("own-fabric-version").files;
    files.erase("/var/lib/dpkg/status");
    const std::string& path = row.first;
    files[path] = row.second;
    TreeOnDisk tree(files);
    Answer answer = ask_doctor(tree.root());
    CHECK_MESSAGE(answer.faults == std::vector<std::string>{"fabric-manager"}, path);
    CHECK_MESSAGE(mentions(answer, "550.90.07"), path);
  }
}

TEST_CASE("doctor: an Xid of an earlier start is none of today's") {
  const std::string start =
      "Nov 30 08:00:00 host kernel: Linux version 6.8.0-45-generic (builder)\n";
  const std::string xid =
      "Nov 29 10:00:00 host kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the "
      "bus.\n";
  const std::vector<std::string> none, lost = {"xid-79"};
  for (std::string path : {"/var/log/kern.log", "/var/log/messages", "/var/log/syslog"}) {
    Tree files = fixture("fx01-ok").files;
    files[path] = start + xid + start + "Nov 30 08:00:01 host kernel: fine\n";
    CHECK(ask_doctor(TreeOnDisk(files).root()).faults == none);
    files[path] = start + start + xid;
    CHECK(ask_doctor(TreeOnDisk(files).root()).faults == lost);
    files[path] = xid;  // nothing tells when that was
    CHECK(ask_doctor(TreeOnDisk(files).root()).faults == none);
  }
  Tree files = fixture("fx01-ok").files;
  files["/captured/journal.txt"] = xid;  // captured just now
  CHECK(ask_doctor(TreeOnDisk(files).root()).faults == lost);
}

TEST_CASE("doctor: what processes have loaded is told") {
  Tree files = fixture("fx01-ok").files;
  const std::string site = "/opt/venv/lib/python3.11/site-packages";
  files["/proc/4711/comm"] = "python\n";
  files["/proc/4711/maps"] =
      "7f00-7f01 r-xp 0 08:01 1 /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15\n"
      "7f02-7f03 r-xp 0 08:01 2 " +
      site +
      "/nvidia/cudnn/lib/libcudnn.so.9\n"
      "7f04-7f05 r-xp 0 08:01 3 /usr/lib/x86_64-linux-gnu/libc.so.6\n";
  files["/proc/12/maps"] = "7f00-7f01 r-xp 0 08:01 1 /usr/lib/x86_64-linux-gnu/libc.so.6\n";
  TreeOnDisk tree(files);
  Answer answer = ask_doctor(tree.root());
  CHECK(mentions(answer, "Process 4711 (python) has loaded"));
  CHECK(mentions(answer, "libcuda.so.550.54.15 (550.54.15)"));
  CHECK(mentions(answer, "libcudnn.so.9 (9.3.0.75)"));
  CHECK_FALSE(mentions(answer, "Process 12 "));
}

}  // namespace tracefire::test
