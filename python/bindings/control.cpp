// SPDX-License-Identifier: Apache-2.0
// Control flow with Python functions as regions, host calls, prints.
#include "tracefire/control.h"

#include <cstring>

#include "python/bindings/arrays.h"

namespace tracefire::python {
namespace {

/// What a Python region function returned, as tensors: a list, a tuple, one tensor or None.
Tensors results_of(nb::object result, const char* what) {
  if (result.is_none()) return {};
  if (is_tensor(result) || nb::isinstance<Variable>(result)) return {tensor_of(result)};
  return tensors_of(result, what);
}

nb::object call_with(nb::handle function, const Tensors& args) {
  return function(*nb::tuple(wrap_all(args)));
}

nb::list py_cond(nb::handle pred, nb::handle true_fn, nb::handle false_fn, nb::handle operands) {
  check_callable(true_fn, "cond", "true_fn");
  check_callable(false_fn, "cond", "false_fn");
  const Tensor test = tensor_of(pred);
  const Tensors args = tensors_of(operands, "cond");
  const auto branch = [&](nb::handle function) {
    return [&args, function] {
      GilAcquire acquired;
      return results_of(call_with(function, args), "cond");
    };
  };
  return wrap_all(recorded([&] { return cond(test, branch(true_fn), branch(false_fn)); }));
}

nb::list py_while_loop(nb::handle cond_fn, nb::handle body_fn, nb::handle variables,
                       nb::handle max_iterations) {
  check_callable(cond_fn, "while_loop", "cond_fn");
  check_callable(body_fn, "while_loop", "body_fn");
  const Tensors vars = tensors_of(variables, "while_loop");
  int64_t limit = -1;
  if (!max_iterations.is_none() && !nb::try_cast(max_iterations, limit)) {
    fail_type("while_loop: argument 'max_iterations' is " + describe(max_iterations),
              "a whole number, or None", "Pass int(...) of what was computed");
  }
  const auto test = [&](const Tensors& now) {
    GilAcquire acquired;
    Tensors results = results_of(call_with(cond_fn, now), "while_loop");
    if (results.size() != 1) {
      fail(ErrorCode::kBadAttribute, "while_loop: the condition returned " +
                                         std::to_string(results.size()) +
                                         " values; expected one bool tensor of shape ()");
    }
    return results[0];
  };
  const auto step = [&](const Tensors& now) {
    GilAcquire acquired;
    return results_of(call_with(body_fn, now), "while_loop");
  };
  return wrap_all(recorded([&] { return while_loop(test, step, vars, limit); }));
}

/// "ValueError: message (train.py:12)": one line about an exception and where it was raised.
std::string exception_text(const nb::python_error& error) {
  std::string text = str_of(error.type().attr("__name__"));
  const auto message = str_of(error.value());
  if (!message.empty()) text += ": " + message;
  nb::object traceback = error.traceback();
  if (!traceback.is_valid() || traceback.is_none()) return text;
  while (!traceback.attr("tb_next").is_none()) traceback = traceback.attr("tb_next");
  return text + " (" + str_of(traceback.attr("tb_frame").attr("f_code").attr("co_filename")) + ":" +
         str_of(traceback.attr("tb_lineno")) + ")";
}

nb::object to_array(const HostArray& array) {
  if (array.dtype == DType::kString) return numpy_strings(array.strings, array.sizes);
  auto bytes = std::make_shared<std::vector<char>>(array.bytes);
  HostValue view;
  view.dtype = array.dtype;
  view.sizes = array.sizes;
  view.data = bytes->data();
  view.bytes = bytes->size();
  view.owner = bytes;
  return numpy_array(std::move(view), true);
}

HostArray from_result(nb::object result, const TensorSpec& spec) {
  using namespace nb::literals;
  HostArray array;
  array.dtype = spec.dtype;
  if (spec.dtype == DType::kString) {
    HostElements elements = read_elements(result, spec.dtype);
    array.sizes = std::move(elements.sizes);
    array.strings = std::move(elements.strings);
    return array;
  }
  nb::object numpy =
      nb::module_::import_("numpy").attr("asarray")(result, "dtype"_a = numpy_dtype(spec.dtype));
  HostElements elements = read_elements(numpy, spec.dtype);
  array.sizes = elements.sizes;
  array.bytes.resize(elements.bytes());
  if (!array.bytes.empty()) std::memcpy(array.bytes.data(), elements.data, array.bytes.size());
  return array;
}

void check_shape(const HostArray& array, const TensorSpec& spec, size_t index) {
  bool fits = static_cast<int>(array.sizes.size()) == spec.shape.rank();
  for (int axis = 0; fits && axis < spec.shape.rank(); ++axis) {
    const Dim want = spec.shape[axis];
    fits = want.is_symbol() || want.value() == array.sizes[static_cast<size_t>(axis)];
  }
  if (fits) return;
  fail(ErrorCode::kShapeMismatch, "result " + std::to_string(index) + " has shape " +
                                      Shape::of(array.sizes).str() + "; expected " +
                                      spec.shape.str() + ", as the host call declares");
}

/// Calls a Python function with NumPy arrays; the GIL is taken for the call alone.
class PythonHostFunction {
 public:
  PythonHostFunction(nb::object function, std::vector<TensorSpec> outputs)
      : function_(new nb::object(std::move(function)), release_with_gil<nb::object>),
        outputs_(std::move(outputs)) {}

  std::vector<HostArray> operator()(const std::vector<HostArray>& inputs) const {
    GilAcquire acquired;
    if (!acquired) throw std::runtime_error("the Python interpreter has ended");
    try {
      return call(inputs);
    } catch (nb::python_error& error) {
      const std::string text = exception_text(error);
      keep_cause(text, nb::borrow(error.value()));
      throw std::runtime_error(text);
    }
  }

 private:
  std::vector<HostArray> call(const std::vector<HostArray>& inputs) const {
    nb::list args;
    for (const HostArray& input : inputs) args.append(to_array(input));
    nb::object result = (*function_)(*nb::tuple(args));
    nb::list results;
    if (PyList_Check(result.ptr()) || PyTuple_Check(result.ptr())) {
      results = nb::list(result);
    } else if (!result.is_none()) {
      results.append(result);
    }
    if (nb::len(results) != outputs_.size()) {
      fail(ErrorCode::kBadArity,
           std::to_string(nb::len(results)) + " results were returned; expected " +
               std::to_string(outputs_.size()) + ", as the host call declares");
    }
    std::vector<HostArray> arrays;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      arrays.push_back(from_result(results[i], outputs_[i]));
      check_shape(arrays.back(), outputs_[i], i);
    }
    return arrays;
  }

  std::shared_ptr<nb::object> function_;
  std::vector<TensorSpec> outputs_;
};

nb::list py_host_call(nb::object function, nb::handle inputs, nb::handle out_specs) {
  check_callable(function, "host_call", "function");
  check_iterable(out_specs, "host_call", "out_specs");
  std::vector<TensorSpec> outputs;
  for (nb::handle spec : nb::borrow(out_specs)) {
    nb::object pair = nb::borrow(spec);
    if (!PySequence_Check(pair.ptr()) || nb::len(pair) != 2) {
      fail(ErrorCode::kBadAttribute, "host_call: an output is described by " + describe(pair) +
                                         "; expected pairs (shape, dtype)");
    }
    outputs.push_back({dtype_of(nb::object(pair[1])), shape_of(nb::object(pair[0]), true)});
  }
  const Tensors args = tensors_of(inputs, "host_call");
  const HostFunction host = PythonHostFunction(std::move(function), outputs);
  return wrap_all(recorded([&] { return host_call(host, args, outputs); }));
}

void py_print(const std::string& format, nb::args values) {
  const Tensors tensors = tensors_of(values, "print");
  recorded([&] { print(format, tensors); });
}

}  // namespace

void bind_control(nb::module_& m) {
  m.def(
      "cond", &py_cond, nb::arg("pred"), nb::arg("true_fn"), nb::arg("false_fn"),
      nb::arg("operands") = nb::make_tuple(),
      "Results of true_fn(*operands) where pred is true, else of false_fn(*operands), as a list.\n"
      "Both are traced and must agree in number, dtypes and shapes.");
  m.def("while_loop", &py_while_loop, nb::arg("cond_fn"), nb::arg("body_fn"), nb::arg("variables"),
        nb::arg("max_iterations") = nb::none(),
        "Repeats variables = body_fn(*variables) while cond_fn(*variables); returns their list.");
  m.def(
      "host_call", &py_host_call, nb::arg("function"), nb::arg("inputs"), nb::arg("out_specs"),
      "Calls a Python function with NumPy arrays when the graph runs, in program order with other\n"
      "host calls. out_specs: pairs (shape, dtype) of its results.");
  m.def("print", &py_print, nb::arg("format"), nb::arg("values"),
        "Prints the format with {} replaced by the values to stderr, in program order.");
}

}  // namespace tracefire::python
