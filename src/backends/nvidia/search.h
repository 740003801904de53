// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/nvidia/library.h"
#include "core/base/status.h"

namespace tracefire::nvidia {

/// Paths of the shared libraries in this process whose file name begins with `stem`.
std::vector<std::string> loaded_libraries(std::string_view stem);

/// Where libraries are looked for, in the order of the fields. Tests fill it by hand.
///
/// Packages of the running Python come before LD_LIBRARY_PATH: a cluster's module of another CUDA
/// on that path is the most common way in which frameworks pick up the wrong cuDNN or cuBLAS.
/// TRACEFIRE_CUDA_PATH is the way to decide by hand.
struct SearchOptions {
  /// Tells which files another framework loaded into this process; null: do not use them.
  std::vector<std::string> (*loaded)(std::string_view stem) = &loaded_libraries;
  std::vector<std::string> explicit_dirs;  ///< TRACEFIRE_CUDA_PATH
  std::vector<std::string> python_roots;   ///< folders that hold Python packages (nvidia/*/lib)
  std::vector<std::string> path_dirs;      ///< LD_LIBRARY_PATH, $CONDA_PREFIX/lib
  std::vector<std::string> toolkit_roots;  ///< CUDA_HOME, CUDA_PATH, /usr/local/cuda*
  std::vector<std::string> driver_dirs;  ///< where drivers install libcuda outside the loader path
  bool loader = true;                    ///< ask the system's loader by plain name
  std::string loader_path;               ///< where it goes first: LD_LIBRARY_PATH

  /// The options of this process: environment, virtual environments, the folders near the
  /// executable and near libtracefire.so, and what add_python_roots() was given.
  static SearchOptions from_environment();
};

/// Folders in which Python looks for packages (sys.path); the Python module calls it at import.
/// Takes effect for libraries opened later.
void add_python_roots(const std::vector<std::string>& roots);

/// What happened at one place.
enum class Outcome : uint8_t {
  kOpened,
  kAbsent,      ///< no such file
  kOtherMajor,  ///< the library is there, in another major version only
  kUnloadable,  ///< the file is there, but the loader refuses it
  kStub,        ///< a file to link against, not a library that works
};

/// One place where a library was looked for.
struct Attempt {
  Library library;
  std::string origin;  ///< "already loaded", "TRACEFIRE_CUDA_PATH", "Python package", …
  std::string path;    ///< file, or folder where nothing fitting lies
  Outcome outcome;
  std::string detail;  ///< the loader's own words, or the files of another major
};

/// A library that is open. It stays open for the life of the process.
struct OpenLibrary {
  Library library = Library::kDriver;
  void* handle = nullptr;
  std::string path;
  std::string origin;
  int64_t version = 0;  ///< as the library gives it, see version_text(); 0 where it does not tell

  /// Address of a function, null where the library has none of that name.
  void* symbol(const char* name) const;
};

/// Looks for libraries and remembers every place. Thread-safe.
class Search {
 public:
  explicit Search(SearchOptions options) : options_(std::move(options)) {}

  /// Opens `library` for a CUDA major (ignored where the number does not depend on it).
  /// Errors: kLibraryNotFound, or kLibraryWrongVersion where only another major is there.
  Result<OpenLibrary> open(Library library, int cuda_major);

  /// CUDA majors of a library that another framework loaded into this process, 0 if none.
  int loaded_major(Library library) const;

  std::vector<Attempt> attempts() const;
  /// One line a place, for people.
  std::string report() const;
  const SearchOptions& options() const { return options_; }

 private:
  struct Place {
    std::string origin;
    std::string dir;
  };
  std::vector<Place> places(Library library) const;
  bool try_file(Library library, const std::string& origin, const std::string& file,
                OpenLibrary* found);
  bool try_dir(Library library, const Place& place, int number, OpenLibrary* found);
  Status missing(Library library, int cuda_major, size_t first_attempt) const;
  void record(Attempt attempt) { attempts_.push_back(std::move(attempt)); }

  const SearchOptions options_;
  mutable std::mutex mutex_;
  std::vector<Attempt> attempts_;
};

}  // namespace tracefire::nvidia
