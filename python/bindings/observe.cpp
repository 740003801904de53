// SPDX-License-Identifier: Apache-2.0
// The proof: where the work was done.
#include "tracefire/observe.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/common.h"

namespace tracefire::python {

void bind_observe(nb::module_& m) {
  constructed(nb::class_<Proof::Row>(m, "ProofRow", "What ran as one kernel on one device."),
              "ProofRow", "tracefire.proof().rows are such objects")
      .def_ro("op", &Proof::Row::op)
      .def_ro("device", &Proof::Row::device)
      .def_ro("kernel", &Proof::Row::kernel)
      .def_ro("library", &Proof::Row::library)
      .def_prop_ro(
          "placement", [](const Proof::Row& row) { return to_text(row.placement); },
          "'on device', 'host by design', 'by user' or 'fallen back'.")
      .def_ro("reason", &Proof::Row::reason)
      .def_ro("location", &Proof::Row::location)
      .def_ro("runs", &Proof::Row::runs)
      .def_ro("flops", &Proof::Row::flops)
      .def_ro("bytes", &Proof::Row::bytes)
      .def("__repr__", [](const Proof::Row& row) {
        return "<ProofRow " + row.op + " on " + row.device + " by " + row.kernel + ", " +
               std::to_string(row.runs) + " runs, " + to_text(row.placement) + ">";
      });
  constructed(
      nb::class_<Proof>(m, "Proof", "What the executor's records say about a stretch of work."),
      "Proof", "Call tracefire.proof()")
      .def_ro("rows", &Proof::rows)
      .def_prop_ro(
          "verdict", [](const Proof& p) { return p.verdict_text(); },
          "'on-gpu', 'partly-on-gpu' or 'on-cpu'; 'nothing-ran' where nothing did.")
      .def_ro("precision", &Proof::precision)
      .def_ro("graph_launches", &Proof::graph_launches)
      .def_ro("runs", &Proof::runs)
      .def_ro("synchronizations", &Proof::synchronizations)
      .def_ro("copies_in", &Proof::copies_in)
      .def_ro("copies_out", &Proof::copies_out)
      .def_ro("counted_copies", &Proof::counted_copies)
      .def_ro("gpu_flops", &Proof::gpu_flops)
      .def_ro("cpu_flops", &Proof::cpu_flops)
      .def_ro("cpu_by_choice_flops", &Proof::cpu_by_choice_flops)
      .def("json", &Proof::json)
      .def("__str__", &Proof::str)
      .def("__repr__", [](const Proof& p) {
        return std::string("<Proof '") + p.verdict_text() + "', " + std::to_string(p.rows.size()) +
               " rows>";
      });
  m.def(
      "proof", [] { return unlocked([] { return proof(); }); },
      "Everything since the start of the process or the last reset_proof().");
  m.def(
      "manifest",
      [](const std::string& commit, std::optional<uint64_t> seed, bool all) {
        return unlocked([&] { return manifest({commit, seed, all}); });
      },
      nb::arg("commit") = "", nb::arg("seed") = nb::none(), nb::arg("all_libraries") = false,
      "What a result was made with, as JSON.");
  m.def("reset_proof", [] { unlocked([] { reset_proof(); }); });
}

}  // namespace tracefire::python
