// SPDX-License-Identifier: Apache-2.0
// The profiler and the writer of TensorBoard's event files.
#include "tracefire/profiler.h"

#include <nanobind/stl/vector.h>

#include "python/bindings/arrays.h"
#include "python/bindings/common.h"
#include "tracefire/summary.h"

namespace tracefire::python {
namespace {

using profiler::Annotation;
using profiler::Profile;
using summary::FileWriter;

/// A stretch of host time as a context manager; made when it is entered.
class Scope {
 public:
  Scope(std::string name, std::string kind, int64_t step)
      : name_(std::move(name)), kind_(std::move(kind)), step_(step) {
    if (kind_ != "annotation" && kind_ != "step" && kind_ != "input") {
      fail(ErrorCode::kBadUsage,
           "the kind of a scope is '" + kind_ + "'; 'annotation', 'step' or 'input' is expected");
    }
  }
  void enter() {
    if (kind_ == "step") {
      span_ = std::make_unique<profiler::Step>(name_, step_);
    } else if (kind_ == "input") {
      span_ = std::make_unique<profiler::Input>(name_);
    } else {
      span_ = std::make_unique<Annotation>(name_);
    }
  }
  void exit() {
    if (!span_) return;
    unlocked([&] { span_->stop(); });
    span_.reset();
  }

 private:
  std::string name_, kind_;
  int64_t step_;
  std::unique_ptr<Annotation> span_;
};

void bind_profile(nb::module_& m) {
  constructed(nb::class_<Profile>(m, "Profile", "What a profile found."), "Profile",
              "Call tracefire.profiler.stop()")
      .def_ro("wall_us", &Profile::wall_us)
      .def_ro("notes", &Profile::notes)
      .def("json", &Profile::json, nb::arg("slices") = false,
           "A process of tracefire.profile/1; with slices=True also the time line.")
      .def("html", &Profile::html)
      .def("trace", &Profile::trace, "Trace events for Perfetto.")
      .def("xplane",
           [](const Profile& p) {
             const std::string bytes = p.xplane();
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("write", &Profile::write, nb::arg("directory"))
      .def("__str__", [](const Profile& p) { return p.str(); })
      .def("__repr__", [](const Profile& p) {
        return "<Profile of " + std::to_string(p.wall_us / 1e6) + " s, " +
               std::to_string(p.operations.size()) + " operations>";
      });
  m.def(
      "start_profile",
      [](bool step_times, bool memory, size_t max_events) {
        unlocked([&] { profiler::start({step_times, memory, max_events}); });
      },
      nb::arg("step_times") = true, nb::arg("memory") = true, nb::arg("max_events") = 100000);
  m.def("stop_profile", [] { return unlocked([] { return profiler::stop(); }); });
  m.def("is_profiling", &profiler::running);
  nb::class_<Scope>(m, "ProfileScope", "Names a stretch of host time in profiles.")
      .def(nb::init<std::string, std::string, int64_t>(), nb::arg("name"),
           nb::arg("kind") = "annotation", nb::arg("step") = -1)
      .def("__enter__",
           [](nb::handle self) {
             nb::inst_ptr<Scope>(self)->enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](Scope& self, nb::args) { self.exit(); });
}

std::vector<std::string> texts_of(nb::handle values) {
  std::vector<std::string> out;
  for (nb::handle value : values) out.push_back(text_of(value));
  return out;
}

void bind_writer(nb::module_& m) {
  nb::class_<FileWriter>(m, "EventFileWriter", "Writes an event file for TensorBoard.")
      .def(
          "__init__",
          [](FileWriter* self, const std::string& logdir, int64_t max_queue, double flush_seconds,
             const std::string& suffix) {
            new (self) FileWriter(logdir, {max_queue, flush_seconds, suffix});
          },
          nb::arg("logdir"), nb::arg("max_queue") = 10, nb::arg("flush_seconds") = 120.0,
          nb::arg("filename_suffix") = ".v2")
      .def("scalar", &FileWriter::scalar, nb::arg("tag"), nb::arg("value"), nb::arg("step"),
           nb::arg("description") = "")
      .def(
          "histogram",
          [](FileWriter& w, const std::string& tag, nb::handle values, int64_t step,
             int64_t buckets, const std::string& description) {
            const HostElements data = read_elements(values, DType::kF64);
            if (data.dtype != DType::kF64) {
              fail(ErrorCode::kDTypeMismatch, "a histogram needs float64 values");
            }
            const auto* first = static_cast<const double*>(data.data);
            w.histogram(tag, std::vector<double>(first, first + data.count()), step, buckets,
                        description);
          },
          nb::arg("tag"), nb::arg("values"), nb::arg("step"), nb::arg("buckets") = 30,
          nb::arg("description") = "")
      .def(
          "image",
          [](FileWriter& w, const std::string& tag, nb::handle pixels, int64_t step,
             int64_t max_outputs, const std::string& description) {
            const HostElements data = read_elements(pixels, DType::kU8);
            if (data.dtype != DType::kU8 || data.sizes.size() != 4) {
              fail(ErrorCode::kShapeMismatch,
                   "an image needs uint8 pixels [count, height, width, channels]");
            }
            const auto* first = static_cast<const uint8_t*>(data.data);
            const summary::Images images{data.sizes[0], data.sizes[1], data.sizes[2], data.sizes[3],
                                         std::vector<uint8_t>(first, first + data.count())};
            unlocked([&] { w.image(tag, images, step, max_outputs, description); });
          },
          nb::arg("tag"), nb::arg("pixels"), nb::arg("step"), nb::arg("max_outputs") = 3,
          nb::arg("description") = "")
      .def(
          "write",
          [](FileWriter& w, const std::string& tag, nb::handle texts,
             const std::vector<int64_t>& shape, int64_t step, const std::string& plugin,
             nb::handle content, int data_class) {
            w.write(tag, texts_of(texts), shape, step, plugin, text_of(content),
                    static_cast<summary::DataClass>(data_class));
          },
          nb::arg("tag"), nb::arg("texts"), nb::arg("shape"), nb::arg("step"), nb::arg("plugin"),
          nb::arg("content"), nb::arg("data_class"))
      .def("graph", [](FileWriter& w, const Function& f) { w.graph(f.nodes()); })
      .def("flush", &FileWriter::flush)
      .def("close", &FileWriter::close)
      .def_prop_ro("path", &FileWriter::path);
}

}  // namespace

void bind_profiler(nb::module_& m) {
  bind_profile(m);
  bind_writer(m);
}

}  // namespace tracefire::python
