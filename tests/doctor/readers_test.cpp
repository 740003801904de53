// SPDX-License-Identifier: Apache-2.0
//
// The parsers, against texts and bytes written by hand.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "tools/doctor/data.h"
#include "tools/doctor/read/elf.h"
#include "tools/doctor/read/ld_cache.h"
#include "tools/doctor/read/packages.h"
#include "tools/doctor/read/smi.h"
#include "tools/doctor/rules.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

TEST_CASE("doctor: versions are compared number by number") {
  CHECK(compare_versions("550.90.07", "550.107.02") < 0);
  CHECK(compare_versions("9.10.2.21", "9.3") > 0);
  CHECK(compare_versions("580", "580.0") == 0);
  CHECK(compare_versions("2.20.0rc1", "2.20.0") < 0);
  CHECK(compare_versions("2.6.0+cu124", "2.6.0") == 0);
  CHECK(leading("9.10.2.21", 2) == "9.10");
  CHECK(local_part("2.6.0+cu124") == "cu124");
  CHECK(meets("1.26.4", "<2.0.0,>=1.23.5"));
  CHECK_FALSE(meets("2.1.0", "<2.0.0,>=1.23.5"));
  CHECK(meets("1.19.5", "~=1.19.2"));
  CHECK_FALSE(meets("1.20.0", "~=1.19.2"));
  CHECK(meets("12.3.101", "==12.3.*"));
}

TEST_CASE("doctor: METADATA, requirements and RECORD") {
  DistMetadata metadata = parse_metadata(
      "Metadata-Version: 2.1\r\nName: Foo_Bar\r\nVersion: 1.2\r\nRequires-Dist: "
      "a>=1\r\n\r\nVersion: 9 of the description\n");
  CHECK(metadata.name == "Foo_Bar");
  CHECK(metadata.version == "1.2");
  CHECK(metadata.requires_dist.size() == 1);
  CHECK(normal_name("Foo_Bar.baz--x") == "foo-bar-baz-x");
  Requirement requirement =
      parse_requirement("nvidia-cudnn-cu12 (<10.0,>=9.3) ; extra == \"and-cuda\"");
  CHECK(requirement.name == "nvidia-cudnn-cu12");
  CHECK(requirement.conditions == "<10.0,>=9.3");
  CHECK(requirement.extra == "and-cuda");
  CHECK(parse_record("a/b.so,sha256=x,1\n\"c,d\",,\n") ==
        std::vector<std::string>{"a/b.so", "c,d"});
}

TEST_CASE("doctor: how frameworks were built") {
  BuildInfo tensorflow = parse_tensorflow_build(
      "build_info = collections.OrderedDict([('cuda_compute_capabilities', ['sm_60', "
      "'compute_90']), ('cuda_version', '12.5.1'), ('is_cuda_build', True), ('is_rocm_build', "
      "False)])");
  CHECK(tensorflow.known);
  CHECK(tensorflow.cuda);
  CHECK(tensorflow.cuda_version == "12.5.1");
  CHECK(tensorflow.sass == std::vector<std::string>{"60"});
  CHECK(tensorflow.ptx == std::vector<std::string>{"90"});
  BuildInfo torch = parse_torch_version(
      "__version__ = '2.2.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n");
  CHECK(torch.known);
  CHECK_FALSE(torch.cuda);
  CHECK(parse_torch_version("__version__ = '2.9.0+cu128'\ncuda: Optional[str] = '12.8'\n")
            .cuda_version == "12.8");
  CHECK(parse_torch_version("cuda = None\nhip = '6.2'\n").rocm);
  // Names that __all__ lists are no values of each other.
  BuildInfo listed = parse_torch_version(
      "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', "
      "'hip', "
      "'rocm', 'xpu']\n__version__ = '2.11.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\n"
      "git_version = '70d99e9'\nhip: Optional[str] = None\n");
  CHECK(listed.framework_version == "2.11.0+cu130");
  CHECK(listed.cuda_version == "13.0");
  CHECK_FALSE(listed.rocm);
  CHECK(parse_cuda_version("{\"cuda\":{\"name\":\"CUDA SDK\",\"version\":\"12.2.2\"}}") ==
        "12.2.2");
  CHECK(parse_cuda_version("CUDA Version 10.2.89") == "10.2.89");
  CHECK(parse_cudnn_header(
            "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n") ==
        "8.1.0");
  CHECK(parse_conda_meta("{\"name\":\"tensorflow\",\"version\":\"2.17.0\",\"build\":\"cpu_py311\"}")
            .build == "cpu_py311");
  CHECK(parse_conda_meta(std::string(100000, '[')).name.empty());
  CHECK(parse_kernel_argv("{\"argv\":[\"/opt/x/bin/python\",3]}").size() == 1);
}

TEST_CASE("doctor: dpkg's status") {
  auto packages = parse_dpkg_status(
      "Package: libcudnn8\nStatus: install ok installed\nVersion: "
      "1:8.0.5.39-1+cuda11.1\n\nPackage: vim\nVersion: 9\n",
      {"libcudnn"});
  REQUIRE(packages.size() == 1);
  CHECK(packages["libcudnn8"].version == "8.0.5.39");
  CHECK(packages["libcudnn8"].state == "installed");
}

TEST_CASE("doctor: the table of nvidia-smi gives the GPUs and the processes that compute") {
  const SmiTable table = parse_smi_table(
      "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |\n"
      "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
      "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
      "|   0  NVIDIA GeForce RTX 30...       On  |   00000000:01:00.0  On |                  N/A |\n"
      "| 30%   41C    P2   Unknown Error / 350W  |   2210MiB /  24576MiB  |     87%      Default |\n"
      "|                                         |                        |                  N/A |\n"
      "|   1  NVIDIA A100-SXM4-80GB         Off  |   00000000:41:00.0 Off |                    2 |\n"
      "| N/A   33C    P0             63W /  400W |     N/A  /  N/A        |      N/A     Default |\n"
      "| Processes:                                                                            |\n"
      "|    0   N/A  N/A            1201      G   /usr/lib/xorg/Xorg                   120MiB |\n"
      "|    0   N/A  N/A            4242    C+G   python3 train.py                    2000MiB |\n"
      "|    1   N/A  N/A            4243      C   python3                                 N/A |\n");
  REQUIRE(table.rows.size() == 2);
  const SmiRow first = {{"index", "0"},
                        {"pci.bus_id", "00000000:01:00.0"},
                        {"persistence_mode", "Enabled"},
                        {"display_active", "Enabled"},
                        {"ecc.errors.uncorrected.volatile.total", "N/A"},
                        {"memory.used", "2210"},
                        {"memory.total", "24576"},
                        {"utilization.gpu", "87"}};  // its name is cut
  CHECK(table.rows[0] == first);
  const SmiRow second = {{"index", "1"},
                         {"name", "NVIDIA A100-SXM4-80GB"},
                         {"pci.bus_id", "00000000:41:00.0"},
                         {"persistence_mode", "Disabled"},
                         {"display_active", "Disabled"},
                         {"ecc.errors.uncorrected.volatile.total", "2"}};
  CHECK(table.rows[1] == second);
  REQUIRE(table.apps.size() == 2);
  CHECK(table.apps[0] == SmiRow{{"index", "0"},
                                {"pid", "4242"},
                                {"process_name", "python3"},
                                {"used_gpu_memory", "2000"}});
  CHECK(table.apps[1] == SmiRow{{"index", "1"}, {"pid", "4243"}, {"process_name", "python3"}});
}

TEST_CASE("doctor: what nvidia-smi prints") {
  auto rows = parse_smi_csv(
      "index, name, memory.total [MiB], compute_mode\n0, Tesla T4, 15360 MiB, Default\n1, Tesla "
      "T4, 15360 MiB, Exclusive_Process\n");
  REQUIRE(rows.size() == 2);
  CHECK(rows[1]["memory.total"] == "15360");
  CHECK(rows[1]["compute_mode"] == "Exclusive_Process");
  auto entries = parse_smi_q(
      "    ECC Errors\n        Volatile\n            DRAM Uncorrectable            : 2\n        "
      "Aggregate\n            DRAM Uncorrectable            : 7\n");
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].section == "ECC Errors / Volatile");
  CHECK(entries[1].section == "ECC Errors / Aggregate");
  SmiList list =
      parse_smi_list("GPU 0: NVIDIA A100 (UUID: GPU-1)\n  MIG 3g.20gb Device 0: (UUID: MIG-2)\n");
  CHECK(list.gpu_names == std::vector<std::string>{"NVIDIA A100"});
  CHECK(list.mig_uuids == std::vector<std::string>{"MIG-2"});
  SmiTable table = parse_smi_table(
      "| NVIDIA-SMI 525.60.13    Driver Version: 522.25       CUDA Version: 11.8     |\n| N/A 30C "
      "P0 | 0MiB / 1MiB | 0%   E. Process |\n| Processes: |\n|    0   N/A  N/A      4242      C   "
      "python   72MiB |\n");
  CHECK(table.tool_version == "525.60.13");
  CHECK(table.driver_version == "522.25");
  CHECK(table.exclusive);
  CHECK(table.process_ids == std::vector<std::string>{"4242"});
}

TEST_CASE("doctor: the dynamic section of a real program, whole and cut off anywhere") {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  std::string bytes = all.str();
  auto reader = [](const std::string& data) {
    return [&data](uint64_t at, size_t size) {
      return at >= data.size() ? std::string() : data.substr(at, size);
    };
  };
  ElfFacts facts = read_elf(reader(bytes));
  CHECK(facts.valid);
  CHECK(facts.is64);
  CHECK(std::find(facts.needed.begin(), facts.needed.end(), "libc.so.6") != facts.needed.end());
  for (size_t size : {0u, 3u, 16u, 63u, 64u, 100u, 1000u, 5000u}) {
    std::string cut = bytes.substr(0, size);
    CHECK(read_elf(reader(cut)).needed.empty());
  }
  std::string damaged = bytes.substr(0, 8192);
  for (size_t i = 4; i < damaged.size(); i += 7) damaged[i] = static_cast<char>(i * 131);
  read_elf(reader(damaged));
}

TEST_CASE("doctor: ld.so.cache") {
  std::string cache(48, '\0');
  std::memcpy(cache.data(), "glibc-ld.so.cache1.1", 20);
  uint32_t count = 2;
  std::memcpy(cache.data() + 20, &count, 4);
  std::string strings = std::string("libcudnn.so.9") + '\0' + "/opt/a/libcudnn.so.9" + '\0' +
                        "libz.so.1" + '\0' + "/lib/libz.so.1" + '\0';
  uint32_t base = 48 + 2 * 24;
  uint32_t names[2][2] = {{base, base + 14}, {base + 35, base + 45}};
  for (auto& entry : names) {
    char bytes[24] = {};
    uint32_t flags = 0x0303;
    std::memcpy(bytes, &flags, 4);
    std::memcpy(bytes + 4, entry, 8);
    cache.append(bytes, 24);
  }
  cache += strings;
  auto found = parse_ld_cache(cache);
  REQUIRE(found.size() == 1);
  CHECK(found["libcudnn.so.9"] == "/opt/a/libcudnn.so.9");
  for (size_t size = 0; size < cache.size(); size += 5) parse_ld_cache(cache.substr(0, size));
  CHECK(parse_ld_cache("no cache").empty());
}

TEST_CASE("doctor: text from outside is made safe") {
  CHECK(printable("a\x1b[31mb\n\xff\xc3\xa9") == "a\\x1b[31mb \uFFFD\u00e9");
  CHECK(printable("\u202Eevil") == "\\u{202e}evil");
  CHECK(html_text("<script>\"&'") == "&lt;script&gt;&quot;&amp;&#39;");
}

TEST_CASE("doctor: conditions of rules") {
  Facts facts;
  facts.set("driver", "525.60.13");
  facts.set("kind", "docker");
  CHECK(holds("driver", facts));
  CHECK(holds("!other", facts));
  CHECK(holds("driver>=525.60.13", facts));
  CHECK_FALSE(holds("driver<525.60.13", facts));
  CHECK_FALSE(holds("other<1", facts));
  CHECK(holds("kind~ock", facts));
  CHECK(holds("kind!=podman", facts));
  CHECK(fill("{kind} {none}!", facts) == "docker !");
}

TEST_CASE("doctor: rules are well formed") {
  Data data;
  CHECK(data.rules().size() > 80);
  for (const Json& rule : data.rules()) {
    INFO(rule.dump());
    CHECK_FALSE(text_of(rule, "kind").empty());
    CHECK(rule.contains("say"));
    CHECK(rule.contains("fix"));
    CHECK(rule.at("order").is_number());
    std::string scope = text_of(rule, "scope"), severity = text_of(rule, "severity");
    CHECK((scope == "machine" || scope == "environment" || scope == "framework"));
    CHECK((severity == "error" || severity == "warning" || severity == "info"));
    if (severity != "info") CHECK(rule.contains("verdict"));
    if (severity != "info") CHECK(rule.at("fix") != "");
    CHECK(rule.dump().find("run as root") == std::string::npos);
  }
}

TEST_CASE("doctor: newer tables") {
  Data data;
  CHECK(data.merge("{\"versions\":{\"tensorflow\":{\"2.99\":{\"cuda\":\"14.0\"}}}}") == "");
  CHECK(text_of(*data.release("tensorflow", "2.99.1"), "cuda") == "14.0");
  CHECK(text_of(*data.release("tensorflow", "2.20.0"), "cuda") == "12.5");
  size_t before = data.rules().size();
  CHECK(data.merge(
            "{\"rules\":[{\"kind\":\"nouveau-loaded\",\"scope\":\"machine\",\"when\":[]}]}") == "");
  CHECK(data.rules().size() == before);
  CHECK(data.merge("{") != "");
  CHECK(data.merge("{\"what\":1}") != "");
  bool exact = true;
  CHECK(data.release("tensorflow", "2.98.0", &exact) != nullptr);
  CHECK_FALSE(exact);
  CHECK(data.capability_of_name("NVIDIA A10") == "8.6");
  CHECK(data.capability_of_name("NVIDIA A100-SXM4-40GB") == "8.0");
  CHECK(data.capability_of_name("Tesla T4") == "7.5");
  CHECK(data.capability_of_pci("0x2b85") == "12.0");
  CHECK(data.data_center("NVIDIA A100-PCIE-40GB"));
  CHECK_FALSE(data.data_center("NVIDIA GeForce RTX 3060"));
}

}  // namespace tracefire::doctor
