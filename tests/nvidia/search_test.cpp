// SPDX-License-Identifier: Apache-2.0
#include "backends/nvidia/search.h"
#include "core/base/loader_trap.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "core/base/settings.h"
#include "nvidia/emulator_setup.h"

namespace tracefire::nvidia {
namespace {

using tracefire::test::nothing_else;
using tracefire::test::place_copy;
using tracefire::test::ScopedEnv;
using tracefire::test::TempDir;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("nvidia: a library is found in a Python package and tells its version") {
  TempDir dir;
  place_copy(dir, "nvidia/cu13/lib/libcublasLt.so.13");
  SearchOptions options = nothing_else();
  options.python_roots = {dir.path()};
  Search search(options);
  const Result<OpenLibrary> found = search.open(Library::kCublasLt, 13);
  REQUIRE(found.ok());
  CHECK(found->path == dir.path("nvidia/cu13/lib/libcublasLt.so.13"));
  CHECK(found->origin == "Python package");
  CHECK(version_text(Library::kCublasLt, found->version) == "13.1.0");
  CHECK(found->symbol("cublasLtCreate") != nullptr);
  CHECK(found->symbol("cublasLtFly") == nullptr);
  CHECK(contains(search.report(), "opened (13.1.0)"));
}

TEST_CASE("nvidia: a missing library names every place and the package that brings it") {
  TempDir dir;
  SearchOptions options = nothing_else();
  options.python_roots = {dir.path("site-packages")};
  options.path_dirs = {dir.path("ld")};
  options.toolkit_roots = {dir.path("cuda")};
  Search search(options);
  const Result<OpenLibrary> found = search.open(Library::kNvrtc, 12);
  REQUIRE_FALSE(found.ok());
  CHECK(found.status().code() == ErrorCode::kLibraryNotFound);
  const std::string& text = found.status().message();
  CHECK(contains(text, "libnvrtc.so.12 was not found"));
  CHECK(contains(text, dir.path("site-packages/nvidia/*/lib")));
  CHECK(contains(text, dir.path("ld")));
  CHECK(contains(text, dir.path("cuda/lib64")));
  CHECK(contains(text, "pip install nvidia-cuda-nvrtc-cu12"));
  CHECK(contains(text, "TRACEFIRE_CUDA_PATH"));
  // One attempt a place: packages, LD_LIBRARY_PATH, three folders of the toolkit.
  CHECK(search.attempts().size() == 5);
}

TEST_CASE("nvidia: another major version is reported as such") {
  TempDir dir;
  place_copy(dir, "lib64/libcublasLt.so.11");
  SearchOptions options = nothing_else();
  options.toolkit_roots = {dir.path()};
  Search search(options);
  const Result<OpenLibrary> found = search.open(Library::kCublasLt, 12);
  REQUIRE_FALSE(found.ok());
  CHECK(found.status().code() == ErrorCode::kLibraryWrongVersion);
  CHECK(contains(found.status().message(), "libcublasLt.so.11"));
  CHECK(contains(found.status().message(), "Expected libcublasLt.so.12"));
}

TEST_CASE("nvidia: a damaged file is told apart from a missing one") {
  TempDir dir;
  dir.write("lib64/libnvrtc.so.13", "not a shared library");
  SearchOptions options = nothing_else();
  options.toolkit_roots = {dir.path()};
  Search search(options);
  const Result<OpenLibrary> found = search.open(Library::kNvrtc, 13);
  REQUIRE_FALSE(found.ok());
  CHECK(found.status().code() == ErrorCode::kLibraryNotFound);
  CHECK(contains(found.status().message(), "is there but cannot be loaded"));
  CHECK(contains(found.status().message(), dir.path("lib64/libnvrtc.so.13")));
}

TEST_CASE("nvidia: a file that would end or block the loader is never given to it") {
  std::ifstream whole(tracefire::test::emulator_library(), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  REQUIRE(bytes.size() > 20000);
  bytes.resize(20000);  // of a download that broke off: mapping its end is a SIGBUS
  TempDir dir;
  dir.write("lib64/libnvrtc.so.13", bytes);
  dir.write("lib64/libcublasLt.so.13", bytes.substr(0, 100));
  REQUIRE(mkfifo(dir.path("lib64/libcuda.so.1").c_str(), 0600) == 0);
  SearchOptions options = nothing_else();
  options.toolkit_roots = {dir.path()};
  options.explicit_dirs = {dir.path("lib64")};
  Search search(options);
  alarm(30);
  const std::string nvrtc = search.open(Library::kNvrtc, 13).status().message();
  const std::string cublaslt = search.open(Library::kCublasLt, 13).status().message();
  const std::string driver = search.open(Library::kDriver, 0).status().message();
  alarm(0);
  CHECK(contains(nvrtc, "libnvrtc.so.13: the file is cut off"));
  CHECK(contains(cublaslt, "libcublasLt.so.13: the file is cut off"));
  CHECK(contains(driver, "libcuda.so.1: it is no regular file"));
}

TEST_CASE("nvidia: the loader is not asked for a name by which it would find such a file") {
  std::ifstream whole(tracefire::test::emulator_library(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  REQUIRE(bytes.size() > 20000);
  TempDir dir;  // of a library that no other test loads: what is there already is not looked for
  dir.write("a/libnccl.so.2", bytes.substr(0, 20000));
  dir.write("b/libnccl.so.2", bytes);
  SearchOptions options = nothing_else();
  options.loader = true;
  options.loader_path = dir.path("none") + "::" + dir.path("a") + ":" + dir.path("b");
  Search search(options);
  const std::string text = search.open(Library::kNccl, 13).status().message();
  CHECK(contains(text, dir.path("a/libnccl.so.2: the file is cut off")));

  // The order of the search: what the loader takes first hides what comes later.
  const auto trap = [&](const std::string& path, const std::string& cache) {
    const tracefire::NamedTrap found =
        tracefire::named_loader_trap("libnccl.so.2", path.c_str(), cache.c_str());
    return found.why == nullptr ? std::string() : std::string(found.path);
  };
  const auto cache = [&](const std::string& text) {
    dir.write("cache", "glibc-ld.so.cache1.1" + text);
    return dir.path("cache");
  };
  const std::string a = dir.path("a/libnccl.so.2"), b = dir.path("b/libnccl.so.2");
  const std::string zero(1, '\0'), name = "libnccl.so.2" + zero;
  CHECK(trap(dir.path("b") + ";" + dir.path("a"), "") == "");
  CHECK(trap(dir.path("a") + ";" + dir.path("b"), "") == a);
  CHECK(trap("", cache(zero + name + a + zero)) == a);
  CHECK(trap("", cache(zero + name + b + zero + a + zero)) == "");
  CHECK(trap("", cache(zero + "/nowhere/" + name + a + zero)) == a);
  CHECK(trap("", cache(zero + a)) == "");          // a cache that is cut off itself
  CHECK(trap("", cache("libnccl.so.2")) == "");  // and nothing before the name
  CHECK(trap("", cache("")) == "");
  CHECK(trap("", dir.path("")) == "");
}

TEST_CASE("nvidia: a good copy is used although an earlier place holds a damaged one") {
  TempDir dir;
  dir.write("first/libnvrtc.so.13", "damaged");
  place_copy(dir, "second/libnvrtc.so.13");
  SearchOptions options = nothing_else();
  options.path_dirs = {dir.path("first"), dir.path("second")};
  Search search(options);
  const Result<OpenLibrary> found = search.open(Library::kNvrtc, 13);
  REQUIRE(found.ok());
  CHECK(found->path == dir.path("second/libnvrtc.so.13"));
}

TEST_CASE("nvidia: the order is explicit folder, Python packages, LD_LIBRARY_PATH, toolkit") {
  TempDir dir;
  const std::string name = "libnvrtc.so.13";
  place_copy(dir, "explicit/" + name);
  place_copy(dir, "site/nvidia/cu13/lib/" + name);
  place_copy(dir, "ld/" + name);
  place_copy(dir, "cuda/lib64/" + name);
  SearchOptions options = nothing_else();
  options.toolkit_roots = {dir.path("cuda")};
  const auto origin = [&] {
    Search search(options);
    const Result<OpenLibrary> found = search.open(Library::kNvrtc, 13);
    return found.ok() ? found->origin : std::string("none");
  };
  CHECK(origin() == "CUDA toolkit");
  options.path_dirs = {dir.path("ld")};
  CHECK(origin() == "LD_LIBRARY_PATH");
  options.python_roots = {dir.path("site")};
  CHECK(origin() == "Python package");
  options.explicit_dirs = {dir.path("explicit")};
  CHECK(origin() == "TRACEFIRE_CUDA_PATH");
}

TEST_CASE("nvidia: what is already loaded into the process wins") {
  TempDir dir;
  place_copy(dir, "torch/libcupti.so.12");
  place_copy(dir, "ld/libcupti.so.12");
  SearchOptions first = nothing_else();
  first.path_dirs = {dir.path("torch")};
  Search loads(first);
  REQUIRE(loads.open(Library::kCupti, 12).ok());

  SearchOptions options = nothing_else();
  options.loaded = &loaded_libraries;
  options.path_dirs = {dir.path("ld")};
  Search search(options);
  CHECK(search.loaded_major(Library::kCupti) == 12);
  const Result<OpenLibrary> found = search.open(Library::kCupti, 12);
  REQUIRE(found.ok());
  CHECK(found->origin == "already loaded");
  CHECK(found->path == dir.path("torch/libcupti.so.12"));
}

TEST_CASE("nvidia: a stub of the driver is never opened") {
  TempDir dir;
  place_copy(dir, "stubs/libcuda.so.1");
  SearchOptions options = nothing_else();
  options.driver_dirs = {dir.path("stubs")};
  Search search(options);
  const Result<OpenLibrary> found = search.open(Library::kDriver, 0);
  REQUIRE_FALSE(found.ok());
  CHECK(contains(search.report(), "a stub to link against"));
}

TEST_CASE("nvidia: the environment decides where is looked") {
  TempDir dir;
  std::filesystem::create_directories(dir.path("venv/lib/python3.12/site-packages"));
  const ScopedEnv cuda_path("TRACEFIRE_CUDA_PATH", "/a:/b");
  const ScopedEnv venv("VIRTUAL_ENV", dir.path("venv"));
  const ScopedEnv ld("LD_LIBRARY_PATH", "/c::/d");
  const ScopedEnv home("CUDA_HOME", "/e");
  add_python_roots({"/given/by/python"});
  reset_settings();
  const SearchOptions options = SearchOptions::from_environment();
  CHECK(options.explicit_dirs == std::vector<std::string>{"/a", "/b"});
  REQUIRE(set_setting("cuda_path", "/f").ok());
  CHECK(SearchOptions::from_environment().explicit_dirs == std::vector<std::string>{"/f"});
  REQUIRE(options.python_roots.size() >= 2);
  CHECK(options.python_roots[0] == "/given/by/python");
  CHECK(options.python_roots[1] == dir.path("venv/lib/python3.12/site-packages"));
  REQUIRE(options.path_dirs.size() >= 2);
  CHECK(options.path_dirs[0] == "/c");
  CHECK(options.path_dirs[1] == "/d");
  CHECK(options.toolkit_roots[0] == "/e");
  CHECK((options.loaded == &loaded_libraries));
  CHECK(options.loader);
  unsetenv("TRACEFIRE_CUDA_PATH");
  reset_settings();
}

TEST_CASE("nvidia: versions are written as people write them") {
  CHECK(version_text(Library::kDriver, 13000) == "13.0");
  CHECK(version_text(Library::kDriver, 12080) == "12.8");
  CHECK(version_text(Library::kNvrtc, 12060) == "12.6");
  CHECK(version_text(Library::kCublasLt, 120904) == "12.9.4");
  CHECK(version_text(Library::kCudnn, 8905) == "8.9.5");
  CHECK(version_text(Library::kCudnn, 91900) == "9.19.0");
  CHECK(version_text(Library::kNccl, 22809) == "2.28.9");
}

TEST_CASE("nvidia: file names follow the CUDA major where they have one") {
  CHECK(soname(Library::kDriver, 13) == "libcuda.so.1");
  CHECK(soname(Library::kCublasLt, 12) == "libcublasLt.so.12");
  CHECK(soname(Library::kCudnn, 13) == "libcudnn.so.9");
  CHECK(soname(Library::kNccl, 12) == "libnccl.so.2");
}

}  // namespace
}  // namespace tracefire::nvidia
