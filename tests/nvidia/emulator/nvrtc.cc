// SPDX-License-Identifier: Apache-2.0
// libnvrtc of the emulator: compiles the kernel's text for the host with the system's compiler.
#include <dlfcn.h>
#include <nvrtc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "emulator.h"

struct _nvrtcProgram {
  std::string source, log, image;
  bool ptx = false;
};

namespace {

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Functions that let the driver call the kernels: one pair for each __global__ function.
std::string trampolines(const std::string& source) {
  std::string text = "\n";
  const std::regex kernel(R"(__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\()");
  for (auto it = std::sregex_iterator(source.begin(), source.end(), kernel);
       it != std::sregex_iterator(); ++it) {
    const std::string name = (*it)[1];
    text += "extern \"C\" __attribute__((visibility(\"default\"))) int tf_emu_run_" + name +
            "(const unsigned* g, const unsigned* b, unsigned s, void** p) { tf_emu::use_fibers = "
            "TF_EMU_FIBERS; return tf_emu::launch(&" +
            name +
            ", g, b, s, p); }\n"
            "extern \"C\" __attribute__((visibility(\"default\"))) void tf_emu_sizes_" +
            name + "(int* s) { tf_emu::parameter_sizes(&" + name + ", s); }\n";
  }
  return text;
}

}  // namespace

int tf_emu_major() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&tf_emu_major), &info) == 0) return 13;
  const std::string path = info.dli_fname;
  const int major = std::atoi(path.substr(path.rfind('.') + 1).c_str());
  return major < 11 ? 13 : major;
}

extern "C" {
nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = tf_emu_major();
  *minor = 0;
  return NVRTC_SUCCESS;
}
const char* nvrtcGetErrorString(nvrtcResult code) {
  if (code == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE) return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
  return code == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}
nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = tf_emu_major() >= 13 ? 4 : 3;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* list) {
  const int archs12[] = {70, 75, 90};
  const int archs13[] = {75, 80, 90, 120};
  std::memcpy(list, tf_emu_major() >= 13 ? archs13 : archs12,
              static_cast<size_t>(tf_emu_major() >= 13 ? 4 : 3) * sizeof(int));
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int,
                               const char* const*, const char* const*) {
  *program = new _nvrtcProgram{source, "", "", false};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  ++tf_emu_counts()->compiles;
  if (std::getenv("TF_EMU_NO_BUILTINS") != nullptr) {
    program->log = "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.";
    return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  }
  std::string defines;
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i];
    if (option.find("compute_") != std::string::npos) program->ptx = true;
    if (option.rfind("-D", 0) == 0) defines += " '" + option + "'";
    if (option.find("--gpu-architecture=sm_") == 0)
      defines += " -D__CUDA_ARCH__=" + option.substr(22) + "0";
  }
  char dir[] = "/tmp/tf_nvrtc_XXXXXX";
  if (mkdtemp(dir) == nullptr) return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  const std::string base = std::string(dir) + "/k";
  const bool fibers = program->source.find("__sync") != std::string::npos ||
                      program->source.find("__shfl") != std::string::npos;
  const char* const prelude = std::getenv("TF_EMU_PRELUDE");
  std::ofstream(base + ".cpp") << "#include \"" << (prelude != nullptr ? prelude : TF_EMU_PRELUDE)
                               << "\"\n#define TF_EMU_FIBERS " << (fibers ? "true" : "false")
                               << "\n#line 1 \"kernels.cu\"\n"
                               << program->source << trampolines(program->source);
  const std::string command =
      "c++ -std=c++17 -O0 -w -fPIC -shared -fvisibility=hidden -fno-strict-aliasing "
      "-ffp-contract=off" +
      defines + " " + base + ".cpp -o " + base + ".so >" + base + ".log 2>&1";
  const int code = std::system(command.c_str());
  program->log = slurp(base + ".log");
  const std::string library = slurp(base + ".so");
  program->image = "TFEMU " + std::to_string(library.size()) + "\n" + library;
  std::error_code ignored;
  if (std::getenv("TF_EMU_KEEP") == nullptr) std::filesystem::remove_all(dir, ignored);
  return code == 0 ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* size) {
  *size = program->image.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* text) {
  std::memcpy(text, program->image.data(), program->image.size());
  text[program->image.size()] = '\0';
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  *size = program->ptx ? 0 : program->image.size();
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* bytes) {
  std::memcpy(bytes, program->image.data(), program->image.size());
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = program->log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* text) {
  std::memcpy(text, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}
}
