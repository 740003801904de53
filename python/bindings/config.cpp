// SPDX-License-Identifier: Apache-2.0
// Devices, scopes, settings, waiting, and the end of the interpreter.
#include "tracefire/config.h"

#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>

#include "python/bindings/common.h"

namespace tracefire::python {
namespace {

nb::list device_names() {
  nb::list names;
  for (const DeviceDescription& device : unlocked([] { return list_devices(); })) {
    names.append(device.device.str());
  }
  return names;
}

nb::list device_details() {
  nb::list list;
  for (const DeviceDescription& device : unlocked([] { return list_devices(); })) {
    nb::dict row;
    row["device"] = device.device.str();
    row["name"] = device.name;
    row["architecture"] = device.architecture;
    row["memory_bytes"] = device.memory_bytes;
    row["driver"] = device.driver;
    list.append(row);
  }
  return list;
}

nb::dict memory_dict(nb::handle device) {
  Device wanted = device_of(device);
  const MemoryInfo info = unlocked([&] {
    return memory_info(wanted.is_set() ? wanted : default_device());
  });
  nb::dict row;
  row["in_use"] = info.in_use;
  row["peak"] = info.peak;
  row["reserved"] = info.reserved;
  row["limit"] = info.limit;
  return row;
}

/// Context manager around a scope of the library that Arg opens.
template <class Scope, class Arg>
class Context {
 public:
  explicit Context(Arg arg) : arg_(std::move(arg)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { close(); }
  void enter() {
    // Entering a device scope may start the devices.
    scopes_.push_back(unlocked([&] { return std::make_unique<Scope>(arg_); }));
  }
  void close() {
    if (scopes_.empty()) return;
    // Leaving a device scope runs what is pending.
    unlocked([&] { scopes_.pop_back(); });
  }

 private:
  Arg arg_;
  std::vector<std::unique_ptr<Scope>> scopes_;  // one object may be entered again inside itself
};
using DeviceContext = Context<DeviceScope, Device>;
using NameContext = Context<NameScope, std::string>;

template <class T>
nb::class_<T> bind_context(nb::module_& m, const char* name, const char* doc) {
  return nb::class_<T>(m, name, doc)
      .def("__enter__",
           [](nb::handle self) {
             nb::inst_ptr<T>(self)->enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](T& self, nb::args) { self.close(); });
}

std::string setting_value(nb::handle value) {
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True ? "true" : "false";
  return text_of(value);
}

/// "true" as True, "256" as 256, other texts as they are.
nb::object setting_object(const std::string& text) {
  if (text == "true") return nb::bool_(true);
  if (text == "false") return nb::bool_(false);
  const nb::str value(text.c_str());
  nb::object number = nb::steal(PyLong_FromString(text.c_str(), nullptr, 10));
  if (!number.is_valid()) {
    PyErr_Clear();
    number = nb::steal(PyFloat_FromString(value.ptr()));
  }
  if (number.is_valid()) return number;
  PyErr_Clear();
  return value;
}

/// Whether a signal handler of Python wants the work stopped, as Ctrl-C does. Taking the GIL has
/// its price, so it is asked for at most 50 times a second.
bool interrupted() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last;
  const auto now = Clock::now();
  if (now - last < std::chrono::milliseconds(20)) return false;
  last = now;
  GilAcquire acquired;
  if (!acquired || PyErr_CheckSignals() == 0) return false;
  nb::python_error error;
  keep_interrupt(nb::borrow(error.value()));
  return true;
}

void end_runtime() {
  // What is pending may still print, save or call back. Each call tells one failure. Devices are
  // not waited for: a process that used none would start them for that.
  constexpr int kMostTold = 20;
  for (int told = 0; told < kMostTold; ++told) {
    try {
      unlocked([] { flush(); });
      break;
    } catch (const std::exception& error) {
      PySys_FormatStderr("tracefire: work pending at exit failed: %s\n", error.what());
    }
  }
  end_runtime_threads();
  set_interrupt_check({});
  set_location_source(nullptr);
  drop_kept_exceptions();
}

void bind_settings(nb::module_& m) {
  m.def("set_setting", [](const std::string& name, nb::handle value) {
    change_setting(name, setting_value(value));
  }, nb::arg("name"), nb::arg("value"), "Gives a setting a value; `tracefire settings` lists them.");
  m.def("get_setting", [](const std::string& name) { return setting_object(setting(name)); },
        nb::arg("name"));
  m.def("set_soft_device_placement", &set_soft_device_placement, nb::arg("enabled"));
  m.def("set_log_device_placement",
        [](bool enabled) { unlocked([&] { set_log_device_placement(enabled); }); },
        nb::arg("enabled"));
  m.def("set_tensor_float_32", &set_tensor_float_32, nb::arg("allowed"));
  m.def("set_cpu_devices", &set_cpu_devices, nb::arg("count"),
        "How many virtual CPU devices there are; before any work only.");
  m.def("mask_ops", &mask_ops, nb::arg("device_kind"), nb::arg("ops"),
        "Hides operations from a kind of device, for tests of placement.");
  m.def("add_library_root", &add_library_root, nb::arg("directory"));
}

}  // namespace

void bind_config(nb::module_& m) {
  m.def("list_devices", &device_names, "Names of the usable devices, GPUs first.");
  m.def("device_details", &device_details, "The same with name, architecture, memory and driver.");
  m.def("why_no_gpu", [] { return unlocked([] { return why_no_gpu(); }); },
        "Why no GPU is used and how to cure it; empty where one is.");
  m.def("default_device", [] { return unlocked([] { return default_device().str(); }); });
  m.def("library_report", [] { return unlocked([] { return library_report(); }); },
        "Every NVIDIA library that was looked for: places, versions, outcome.");
  m.def("memory_info", &memory_dict, nb::arg("device") = nb::none(),
        "Bytes in_use, peak, reserved and limit of a device.");
  bind_settings(m);
  bind_context<DeviceContext>(m, "DeviceScope", "Operations inside are placed on the device.")
      .def("__init__", [](DeviceContext* self, nb::handle device) {
        new (self) DeviceContext(device_of(device));
      }, nb::arg("device").none());
  bind_context<NameContext>(m, "NameScope", "Prefixes the names of operations.")
      .def("__init__", [](NameContext* self, const std::string& name) {
        new (self) NameContext(name);
      }, nb::arg("name"));
  m.attr("device_scope") = m.attr("DeviceScope");
  m.attr("name_scope") = m.attr("NameScope");
  m.def("flush", [] { unlocked([] { flush(); }); }, "Fires what is pending on this thread.");
  m.def("synchronize", [] { unlocked([] { synchronize(); }); },
        "Waits for all devices; raises the first failure.");
  // NVIDIA's pip packages lie where Python's packages do.
  for (nb::handle folder : nb::module_::import_("sys").attr("path")) {
    if (PyUnicode_Check(folder.ptr()) && nb::len(folder) > 0) {
      add_library_root(path_of(folder));
    }
  }
  set_interrupt_check(&interrupted);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_runtime));
}

}  // namespace tracefire::python
