// SPDX-License-Identifier: Apache-2.0
// Reverse-mode gradients, of eager work through a Tape and inside functions being traced.
#include <memory>

#include "python/bindings/common.h"
#include "tracefire/grad.h"

namespace tracefire::python {
namespace {

/// Seeds for the outputs; None among them stands for ones.
Tensors seeds_of(nb::handle given, const Tensors& outputs) {
  Tensors seeds;
  if (given.is_none()) return seeds;
  size_t index = 0;
  for (nb::handle seed : nb::borrow(given)) {
    if (!seed.is_none() || index >= outputs.size()) {
      seeds.push_back(tensor_of(seed));
    } else {
      const Tensor& output = outputs[index];
      seeds.push_back(recorded([&] {
        Tensor one = apply_op("cast", std::vector<Tensor>{Tensor::scalar(1.0f)},
                           {{"dtype", output.dtype()}})[0];
        return apply_op("broadcast_to", {&one, 1}, {{"shape", output.shape()}})[0];
      }));
    }
    ++index;
  }
  return seeds;
}

nb::list traced_gradients(nb::handle outputs, nb::handle sources, nb::handle output_grads) {
  const Tensors targets = tensors_of(outputs, "gradients");
  const Tensors wanted = tensors_of(sources, "gradients");
  const Tensors seeds = seeds_of(output_grads, targets);
  return wrap_all(recorded([&] { return gradients(targets, wanted, seeds); }));
}

/// A Tape that starts when it is entered, and can be paused by leaving and entering it again.
class PythonTape {
 public:
  void enter() {
    if (tape_) {
      tape_->resume();
    } else {
      tape_ = std::make_unique<Tape>();
    }
  }
  void leave() {
    if (tape_) tape_->stop();
  }
  void watch(nb::handle value) { opened().watch(tensor_of(value)); }
  nb::list gradients(nb::handle outputs, nb::handle sources, nb::handle output_grads) {
    if (is_tracing()) return traced_gradients(outputs, sources, output_grads);
    const Tensors targets = tensors_of(outputs, "gradients");
    const Tensors wanted = tensors_of(sources, "gradients");
    const Tensors seeds = seeds_of(output_grads, targets);
    Tape& tape = opened();
    return wrap_all(recorded([&] { return tape.gradients(targets, wanted, seeds); }));
  }

 private:
  Tape& opened() {
    if (!tape_) {
      fail(ErrorCode::kBadUsage,
           "a Tape was used that recorded nothing; expected `with Tape() as tape:` around the "
           "computation");
    }
    return *tape_;
  }
  std::unique_ptr<Tape> tape_;
};

}  // namespace

void bind_gradients(nb::module_& m) {
  nb::class_<PythonTape>(m, "Tape", "Remembers what is computed in its scope, for gradients.")
      .def(nb::init<>())
      .def("__enter__",
           [](nb::handle self) {
             nb::inst_ptr<PythonTape>(self)->enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](PythonTape& self, nb::args) { self.leave(); })
      .def("watch", &PythonTape::watch, nb::arg("tensor"))
      .def("gradients", &PythonTape::gradients, nb::arg("outputs"), nb::arg("sources"),
           nb::arg("output_grads") = nb::none(),
           "d outputs / d sources, summed over the outputs; None for a source without influence.");
  m.def("gradients", &traced_gradients, nb::arg("outputs"), nb::arg("sources"),
        nb::arg("output_grads") = nb::none(),
        "The same inside a function being traced, where everything is remembered anyway.");
}

}  // namespace tracefire::python
