// SPDX-License-Identifier: Apache-2.0
//
// Fixes in full on particular systems: where the system's own driver is too old, where the GPU is,
// where Windows or the host has the driver, and where pip is not what installs.
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "doctor/fixture.h"

namespace tracefire::test {

namespace {

/// A tree like `id`, on another system.
Tree on(const std::string& id, const std::string& os, const std::string& kernel = "") {
  Tree tree = fixture(id).files;
  tree["/etc/os-release"] = os;
  if (!kernel.empty()) tree["/proc/version"] = "Linux version " + kernel + " (builder@host)\n";
  return tree;
}

Tree changed(Tree tree, const std::string& from, const std::string& to) {
  Tree out;
  auto replaced = [&](std::string text) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  };
  for (const auto& [path, content] : tree) {
    FixtureJson value = content;
    if (content.is_string()) value = replaced(content.get<std::string>());
    if (content.is_object() && content.contains("symlink"))
      value["symlink"] = replaced(content["symlink"].get<std::string>());
    out[replaced(path)] = value;
  }
  return out;
}

struct Row {
  std::string how;
  Tree tree;
  std::string kind;
  std::vector<std::string> fix, lacks;
};

}  // namespace

TEST_CASE("doctor: fixes in full on particular systems") {
  const std::string too_old = "fx12-driver-too-old", boot = "fx17-secure-boot";
  const std::string repository = "developer.download.nvidia.com/compute/cuda/repos/";
  std::vector<Row> rows = {
      {"Debian 11",
       on(too_old, "ID=debian\nVERSION_ID=\"11\"\n"),
       "driver-too-old",
       {repository + "debian11/x86_64/cuda-keyring_1.1-1_all.deb", "dpkg -i", "cuda-drivers"},
       {}},
      {"Debian 12",
       on(too_old, "ID=debian\nVERSION_ID=\"12\"\n"),
       "driver-too-old",
       {repository + "debian12/", "cuda-drivers-580"},
       {"install nvidia-driver"}},
      {"Ubuntu 18.04",
       on(too_old, "ID=ubuntu\nVERSION_ID=\"18.04\"\n"),
       "driver-too-old",
       {repository + "ubuntu1804/", "cuda-drivers"},
       {"nvidia-driver-580"}},
      {"Ubuntu 24.04",
       on(too_old, "ID=ubuntu\nVERSION_ID=\"24.04\"\n"),
       "driver-too-old",
       {"sudo apt install nvidia-driver-580"},
       {"keyring"}},
      {"Fedora",
       on(too_old, "ID=fedora\nVERSION_ID=42\n"),
       "driver-too-old",
       {"rpmfusion-nonfree-release", "akmod-nvidia"},
       {"apt"}},
      {"Rocky 8",
       on(too_old, "ID=rocky\nVERSION_ID=8.10\n"),
       "driver-too-old",
       {repository + "rhel8/", "epel-release-latest-8", "nvidia-driver:580-dkms"},
       {"apt"}},
      {"Alma 9",
       on(too_old, "ID=almalinux\nVERSION_ID=9.5\n"),
       "driver-too-old",
       {repository + "rhel9/"},
       {"apt"}},
      {"Amazon Linux 2023",
       on(too_old, "ID=amzn\nVERSION_ID=2023\n"),
       "driver-too-old",
       {repository + "amzn2023/"},
       {"epel"}},
      {"Amazon Linux 2",
       on(too_old, "ID=amzn\nVERSION_ID=2\n"),
       "driver-too-old",
       {"yum install", "NVIDIA-Linux-x86_64-580.", ".run"},
       {"dnf"}},
      {"Leap",
       on(too_old, "ID=opensuse-leap\nVERSION_ID=15.6\n"),
       "driver-too-old",
       {"zypper addrepo", "opensuse/leap/15.6"},
       {}},
      {"SLES", on(too_old, "ID=sles\nVERSION_ID=15.6\n"), "driver-too-old", {"suse/sle15sp6"}, {}},
      {"Secure Boot on Fedora",
       on(boot, "ID=fedora\nVERSION_ID=42\n"),
       "secure-boot",
       {"kmodgenca", "mokutil --import /etc/pki/akmods/certs/public_key.der"},
       {"shim-signed"}},
      {"Secure Boot on Debian",
       on(boot, "ID=debian\nVERSION_ID=\"12\"\n"),
       "secure-boot",
       {"/var/lib/dkms/mok.pub"},
       {"akmods"}},
      {"Arch, Pascal under 590",
       on("own-pascal-590", "ID=arch\n"),
       "driver-unsupported-gpu",
       {"aur.archlinux.org/nvidia-580xx-utils.git", "nvidia-580xx-dkms", "makepkg -si"},
       {"pacman -S nvidia-dkms", "nvidia-open-dkms"}},
      {"uv",
       changed(on("fx02-and-cuda-missing", "ID=ubuntu\nVERSION_ID=\"22.04\"\n"),
               "home = /usr/bin\nversion =", "home = /usr/bin\nuv = 0.8.3\nversion_info ="),
       "pip-cuda-libs-missing",
       {"uv pip install --python /opt/venv/bin/python -U \"tensorflow[and-cuda]"},
       {"-m pip"}}};
  {
    Tree managed = changed(on("fx02-and-cuda-missing", "ID=debian\nVERSION_ID=\"12\"\n"),
                           "/opt/venv/lib/python3.11/site-packages",
                           "/usr/local/lib/python3.11/dist-packages");
    managed.erase("/opt/venv/pyvenv.cfg");
    managed["/usr/lib/python3.11/EXTERNALLY-MANAGED"] = "[externally-managed]\n";
    rows.push_back({"PEP 668",
                    managed,
                    "pip-cuda-libs-missing",
                    {"sudo apt install python3-venv", "python3.11 -m venv ~/tensorflow-env",
                     "~/tensorflow-env/bin/python -m pip install -U \"tensorflow[and-cuda]"},
                    {"python3.11 -m pip"}});
    // The same in a container: root has no sudo there.
    managed["/.dockerenv"] = "";
    rows.push_back({"PEP 668 in a container",
                    managed,
                    "pip-cuda-libs-missing",
                    {"apt install python3-venv"},
                    {"sudo "}});
  }
  for (const Row& row : rows) {
    CAPTURE(row.how);
    TreeOnDisk tree(row.tree);
    const Answer answer = ask_doctor(tree.root());
    CHECK_MESSAGE((!answer.faults.empty() && answer.faults[0] == row.kind), answer.text);
    for (const std::string& words : row.fix)
      CHECK_MESSAGE(answer.fix.find(words) != std::string::npos, (words + " in " + answer.fix));
    for (const std::string& words : row.lacks)
      CHECK_MESSAGE(answer.fix.find(words) == std::string::npos, (words + " in " + answer.fix));
  }
}

TEST_CASE("doctor: purging the Linux driver from WSL leaves the container toolkit") {
  TreeOnDisk tree(fixture("own-wsl-wrong").files);
  const Answer answer = ask_doctor(tree.root());
  const std::string fix = answer.fix;
  CHECK(fix.find("apt purge") != std::string::npos);
  static const std::regex kQuoted("'([^']+)'");
  size_t patterns = 0, drivers = 0;
  for (std::sregex_iterator it(fix.begin(), fix.end(), kQuoted), end; it != end; ++it) {
    const std::regex pattern((*it)[1].str(), std::regex::extended);
    ++patterns;
    for (const char* name : {"libnvidia-container1", "libnvidia-container-tools",
                             "nvidia-container-toolkit", "nvidia-container-toolkit-base"})
      CHECK_MESSAGE(!std::regex_search(std::string(name), pattern), fix);
    for (const char* name :
         {"libnvidia-compute-550", "libnvidia-compute-535-server", "nvidia-driver-550"})
      drivers += std::regex_search(std::string(name), pattern) ? 1 : 0;
  }
  CHECK(patterns >= 2);
  CHECK(drivers == 3);
}

TEST_CASE("doctor: a V100 under driver 535 with wheels for CUDA 13 is cured by those for 12.6") {
  const Tree tree = changed(fixture("fx26-torch-volta-cu130").files, "580.65.06", "535.183.01");
  TreeOnDisk disk(tree);
  const Answer answer = ask_doctor(disk.root());
  CHECK_MESSAGE(std::count(answer.faults.begin(), answer.faults.end(), "cc-too-old") == 1,
                answer.text);
  CHECK_MESSAGE(answer.fix.find("download.pytorch.org/whl/cu126") != std::string::npos, answer.fix);
  CHECK_MESSAGE(answer.fix.find("apt") == std::string::npos, answer.fix);
}

TEST_CASE("doctor: a Jetson's PyTorch is replaced by NVIDIA's PyTorch") {
  Tree tree = fixture("own-jetson").files;
  for (const char* release : {"36", "35"}) {
    const std::string words = std::string(release) == "36" ? "jp6" : "l4t-pytorch:r35";
    Tree torch;
    for (const auto& [path, content] : tree)
      if (path.find("/tensorflow") == std::string::npos) torch[path] = content;
    const std::string site = "/opt/venv/lib/python3.11/site-packages/";
    torch["/opt/venv/pyvenv.cfg"] = "home = /usr/bin\nversion = 3.11.4\n";
    torch["/etc/nv_tegra_release"] = std::string("# R") + release + " (release), REVISION: 4.1\n";
    torch[site + "torch-2.6.0.dist-info/METADATA"] =
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0\n";
    torch[site + "torch-2.6.0.dist-info/WHEEL"] = "Tag: cp311-cp311-manylinux_2_28_aarch64\n";
    torch[site + "torch/version.py"] = "__version__ = '2.6.0'\ncuda = None\n";
    TreeOnDisk disk(torch);
    const Answer answer = ask_doctor(disk.root(), {}, {"--framework", "torch"});
    CHECK_MESSAGE(answer.fix.find(words) != std::string::npos, answer.text);
    CHECK_MESSAGE(answer.fix.find("tensorflow") == std::string::npos, answer.fix);
  }
}

/// A tree with other words in all its files.
Tree with_words(Tree tree, const std::vector<std::pair<std::string, std::string>>& changes) {
  Tree out;
  const auto changed = [&](std::string text) {
    for (const auto& [from, to] : changes)
      for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
  };
  for (auto& [path, content] : tree) {
    if (content.is_string()) content = changed(content.get<std::string>());
    if (content.contains("symlink")) content["symlink"] = changed(content["symlink"]);
    out[changed(path)] = content;
  }
  return out;
}

TEST_CASE("doctor: a CUDA build is advised with the driver that it needs") {
  for (const char* id : {"fx06-jax-cpu", "fx04-tensorflow-cpu"}) {
    const Fixture& one = fixture(id);
    const Answer fits = ask_doctor(TreeOnDisk(one.files).root(), one.env);
    CHECK_MESSAGE(fits.fix.find("525.60.13") == std::string::npos, id);
    const std::string words = one.files.at("/proc/driver/nvidia/version").get<std::string>();
    std::smatch driver;
    REQUIRE(std::regex_search(words, driver, std::regex(R"(\d+\.\d+\.\d+)")));
    const Answer old = ask_doctor(
        TreeOnDisk(with_words(one.files, {{driver.str(), "470.256.02"}})).root(), one.env);
    CHECK_MESSAGE(old.faults == std::vector<std::string>{"cpu-only-wheel"}, id);
    CHECK_MESSAGE(old.fix.find("needs driver 525.60.13 or newer, and 470.256.02 is here") !=
                      std::string::npos,
                  old.fix);
    CHECK_MESSAGE(old.fix.find("sudo reboot") < old.fix.find("pip"), old.fix);
  }
}

TEST_CASE("doctor: libraries are advised with a TensorFlow that has code for the GPU") {
  const Fixture& one = fixture("own-libs-none");
  const auto ask = [&](const std::string& gpu, const std::string& capability) {
    // Blackwell needs the open modules.
    const bool open = capability == "12.0";
    Tree tree = with_words(
        one.files, {{"UNIX x86_64 Kernel Module",
                     open ? "UNIX Open Kernel Module for x86_64" : "UNIX x86_64 Kernel Module"},
                    {"550.54.15", open ? "580.65.06" : "550.54.15"}});
    const std::string text = tree.at("/captured/nvidia-smi-query.csv").get<std::string>();
    for (auto& [path, content] : tree) {
      if (path != "/captured/nvidia-smi-query.csv") continue;
      std::istringstream lines(text);
      std::string header, row, out;
      std::getline(lines, header);
      std::getline(lines, row);
      std::istringstream names(header), cells(row);
      for (std::string column, cell;
           std::getline(names, column, ',') && std::getline(cells, cell, ',');) {
        if (column.find("name") != column.npos) cell = " " + gpu;
        if (column.find("compute_cap") != column.npos) cell = " " + capability;
        out += (out.empty() ? "" : ",") + cell;
      }
      content = header + "\n" + out + "\n";
    }
    tree.erase("/captured/framework.log");  // of another GPU
    return ask_doctor(TreeOnDisk(tree).root(), one.env);
  };
  const Answer old = ask("NVIDIA GeForce GTX 980", "5.2");
  CHECK(old.faults == std::vector<std::string>{"cc-too-old", "pip-cuda-libs-missing"});
  CHECK_MESSAGE(old.fix.find("tensorflow[and-cuda]==2.15.1") != std::string::npos, old.fix);
  const Answer fresh = ask("NVIDIA GeForce RTX 5090", "12.0");
  CHECK(fresh.faults == std::vector<std::string>{"cc-too-new", "pip-cuda-libs-missing"});
  CHECK_MESSAGE(fresh.fix.find("nvcr.io/nvidia/tensorflow") != std::string::npos, fresh.fix);
  const Answer fits = ask("NVIDIA A100", "8.0");
  CHECK(fits.faults == std::vector<std::string>{"pip-cuda-libs-missing"});
  CHECK_MESSAGE(fits.fix.find("tensorflow[and-cuda]==2.") != std::string::npos, fits.fix);
}

TEST_CASE("doctor: packages of a folder that a .pth file adds by site.addsitedir() belong to it") {
  const std::string prefix = "/srv/app/.venv", site = prefix + "/lib/python3.11/site-packages/";
  Tree tree = {
      {prefix + "/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.7\n"},
      {site + "keras-3.15.1.dist-info/METADATA", "Name: keras\nVersion: 3.15.1\n"},
      {"/srv/build/tracefire-0.1.0.dist-info/METADATA", "Name: tracefire\nVersion: 0.1.0\n"},
      {"/home_of_app/.keras/keras.json", R"({"backend": "tensorflow"})"},
      {site + "development.pth", ""}};
  const auto ask = [&](const std::string& line) {
    tree[site + "development.pth"] = line;
    return ask_doctor(TreeOnDisk(tree).root(), {{"HOME", "/home_of_app"}}, {"--python", prefix});
  };
  for (const char* line : {"import site; site.addsitedir('/srv/build')\n", "/srv/build\n",
                           "import site;site.addsitedir(\"/srv/build\")"}) {
    const Answer answer = ask(line);
    CHECK_MESSAGE(answer.report["inventory"].dump().find("Tracefire 0.1.0") != std::string::npos,
                  line);
    // A program may choose the back end that is there.
    CHECK(answer.faults.empty());
    CHECK(answer.notes.count("keras-backend-unset") == 1);
  }
  for (const char* line :
       {"import site; site.addsitedir('/srv/build\n", "import site.addsitedir(",
        "import site; site.addsitedir(x)\n", "# site.addsitedir('/srv/build')\n"}) {
    const Answer answer = ask(line);
    CHECK_MESSAGE(answer.report["inventory"].dump().find("Tracefire") == std::string::npos, line);
    CHECK(answer.faults == std::vector<std::string>{"keras-backend-missing"});
  }
}

TEST_CASE("doctor: many empty environments that are not counted are one line") {
  Tree tree;
  for (int i = 0; i < 20; ++i) {  // copies of one that lay elsewhere
    const std::string copy = "/srv/copy" + std::to_string(i);
    tree[copy + "/pyvenv.cfg"] = "version = 3.12.3\n";
    tree[copy + "/bin/activate"] = "# by venv\nVIRTUAL_ENV=\"/opt/first\"\n";
    tree[copy + "/lib/python3.12/site-packages/pip-24.0.dist-info/METADATA"] =
        "Name: pip\nVersion: 24.0\n";
  }
  const Answer answer = ask_doctor(TreeOnDisk(tree).root());
  int lines = 0;
  for (const auto& line : answer.report["inventory"])
    lines += line.get<std::string>().find("/srv/copy") != std::string::npos;
  CHECK(lines == 3);
  CHECK(answer.report["inventory"].dump().find(
            "17 more environments hold none of these packages") != std::string::npos);
}

}  // namespace tracefire::test
