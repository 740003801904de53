// SPDX-License-Identifier: Apache-2.0
#include "backends/nvidia/machine.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tracefire::nvidia {
namespace {

namespace fs = std::filesystem;

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

int count_pci_gpus(const std::string& root) {
  int count = 0;
  std::error_code ignored;
  for (fs::directory_iterator it(root + "/sys/bus/pci/devices", ignored), end;
       !ignored && it != end; it.increment(ignored)) {
    const std::string dir = it->path().string();
    // Vendor 10de is NVIDIA; class 03xxxx is a display or 3D controller (a GPU's sound is 0403).
    if (read_text(dir + "/vendor").rfind("0x10de", 0) == 0 &&
        read_text(dir + "/class").rfind("0x03", 0) == 0) {
      ++count;
    }
  }
  return count;
}

bool module_loaded(const std::string& modules, const std::string& name) {
  return modules.rfind(name + " ", 0) == 0 || modules.find("\n" + name + " ") != std::string::npos;
}

/// "580.159.04" out of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  …".
std::string driver_in(const std::string& version_file) {
  std::istringstream words(version_file);
  std::string word;
  while (words >> word) {
    const bool digits = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    if (digits && word.find('.') != std::string::npos) return word;
  }
  return "";
}

bool secure_boot_on(const std::string& root) {
  const std::string variable =
      read_text(root + "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
  // Four bytes of attributes, then the value.
  return variable.size() >= 5 && variable[4] == 1;
}

bool is_container(const std::string& root) {
  return exists(root + "/.dockerenv") || exists(root + "/run/.containerenv") ||
         exists(root + "/.singularity.d") ||
         (root.empty() && std::getenv("container") != nullptr) ||
         (root.empty() && std::getenv("KUBERNETES_SERVICE_HOST") != nullptr);
}

}  // namespace

MachineFacts MachineFacts::read(const std::string& root) {
  MachineFacts facts;
  facts.nvidia_gpus = count_pci_gpus(root);
  facts.kernel_driver = driver_in(read_text(root + "/proc/driver/nvidia/version"));
  const std::string modules = read_text(root + "/proc/modules");
  facts.nouveau = module_loaded(modules, "nouveau");
  facts.nova = module_loaded(modules, "nova_core");
  facts.secure_boot = secure_boot_on(root);
  facts.control_node = exists(root + "/dev/nvidiactl");
  facts.uvm_node = exists(root + "/dev/nvidia-uvm");
  std::error_code ignored;
  for (fs::directory_iterator it(root + "/dev", ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (name.rfind("nvidia", 0) != 0 || name.size() < 7) continue;
    const bool numbered = std::isdigit(static_cast<unsigned char>(name[6])) != 0;
    facts.device_nodes = facts.device_nodes || numbered;
    if ((numbered || name == "nvidiactl") && access(it->path().c_str(), R_OK | W_OK) != 0) {
      facts.nodes_denied = true;
    }
  }
  const std::string kernel = read_text(root + "/proc/version");
  facts.wsl = kernel.find("icrosoft") != std::string::npos;
  facts.wsl_driver = exists(root + "/usr/lib/wsl/lib/libcuda.so.1");
  facts.container = is_container(root);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible_devices = visible;
  return facts;
}

}  // namespace tracefire::nvidia
