// SPDX-License-Identifier: Apache-2.0
// Where the user's program is: the innermost Python frame outside of the frameworks.
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "python/bindings/common.h"
#include "tracefire/config.h"

namespace tracefire::python {
namespace {

thread_local const char* user_file = nullptr;
thread_local int32_t user_line = 0;

/// Packages between a user's line and an operation. contextlib and functools run with-blocks and
/// decorators on their behalf.
constexpr std::string_view kPackages[] = {"tracefire",  "keras_tracefire", "keras",
                                          "contextlib", "functools",       "optree", "tree"};

/// What is known of a code object, which is kept so that its address stays its own.
struct CodeInfo {
  nb::object code;
  const char* file;  ///< nullptr: not the user's
};
constexpr size_t kMaxCodes = 8192;

struct Names {
  PyObject* back = PyUnicode_InternFromString("f_back");
  PyObject* globals = PyUnicode_InternFromString("f_globals");
  PyObject* file = PyUnicode_InternFromString("co_filename");
};

// Guarded by the GIL; never destroyed, since the interpreter ends before statics do.
std::unordered_map<PyObject*, CodeInfo>& codes() {
  static auto& instance = *new std::unordered_map<PyObject*, CodeInfo>;
  return instance;
}
const Names& names() {
  static const Names& instance = *new Names;
  return instance;
}

/// Locations keep pointers to file names, so the names live as long as the process.
const char* interned(const std::string& file) {
  static auto& files = *new std::unordered_set<std::string>;
  return files.insert(file).first->c_str();
}

bool is_framework(nb::handle frame) {
  nb::object globals = nb::steal(PyObject_GetAttr(frame.ptr(), names().globals));
  if (!globals.is_valid()) throw nb::python_error();
  nb::handle name = PyDict_GetItemString(globals.ptr(), "__name__");
  if (!name.is_valid() || !nb::isinstance<nb::str>(name)) return false;
  const auto text = shown_text(name);
  const std::string_view package = std::string_view(text).substr(0, text.find('.'));
  for (std::string_view known : kPackages) {
    if (package == known) return true;
  }
  return false;
}

const char* user_file_of(nb::handle frame) {
  nb::object code = nb::steal(reinterpret_cast<PyObject*>(
      PyFrame_GetCode(reinterpret_cast<PyFrameObject*>(frame.ptr()))));
  auto found = codes().find(code.ptr());
  if (found == codes().end()) {
    if (codes().size() >= kMaxCodes) codes().clear();
    const char* file = nullptr;
    if (!is_framework(frame)) {
      nb::object name = nb::steal(PyObject_GetAttr(code.ptr(), names().file));
      if (!name.is_valid()) throw nb::python_error();
      file = interned(shown_text(name));
    }
    PyObject* key = code.ptr();
    found = codes().emplace(key, CodeInfo{std::move(code), file}).first;
  }
  return found->second.file;
}

/// Finds the user's line of this thread; leaves the one noted before where there is none.
void find_user_line() {
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid() && !frame.is_none()) {
    if (const char* file = user_file_of(frame)) {
      user_file = file;
      user_line = PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(frame.ptr()));
      return;
    }
    frame = nb::steal(PyObject_GetAttr(frame.ptr(), names().back));
  }
}

bool read_user_line(const char** file, int32_t* line) {
  *file = user_file;
  *line = user_line;
  return user_file != nullptr;
}

nb::object user_location() {
  UserLine line;
  if (user_file == nullptr) return nb::none();
  return nb::make_tuple(user_file, user_line);
}

}  // namespace

UserLine::UserLine() : file_(user_file), line_(user_line) { find_user_line(); }
UserLine::~UserLine() {
  user_file = file_;
  user_line = line_;
}

void bind_location(nb::module_& m) {
  names();
  set_location_source(&read_user_line);
  m.def("user_location", &user_location,
        "(file, line) of the innermost frame outside of the frameworks, as errors name it.");
}

}  // namespace tracefire::python
