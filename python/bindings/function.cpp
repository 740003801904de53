// SPDX-License-Identifier: Apache-2.0
// Tracing: scopes in which operations are recorded or only typed, and the functions they give.
#include "tracefire/function.h"

#include <algorithm>
#include <numeric>

#include "python/bindings/common.h"

namespace tracefire::python {
namespace {

enum class ScopeKind : uint8_t { kTrace, kAbstract, kInit };

/// The scopes that Python entered on this thread, innermost last.
std::vector<ScopeKind>& scopes() {
  thread_local std::vector<ScopeKind> stack;
  return stack;
}

void leave(ScopeKind kind) {
  auto& stack = scopes();
  const auto found = std::find(stack.rbegin(), stack.rend(), kind);
  if (found != stack.rend()) stack.erase(std::next(found).base());
}

bool is_abstract() { return !scopes().empty() && scopes().back() == ScopeKind::kAbstract; }

[[noreturn]] void not_entered(const char* what, const char* method) {
  fail(ErrorCode::kBadUsage, std::string(what) + "." + method +
                                 " was called outside of its scope; expected it inside `with " +
                                 what + "(...) as scope:`, before finish()");
}

/// Context manager around FunctionTrace.
class TraceScope {
 public:
  explicit TraceScope(std::string name) : name_(std::move(name)) {}
  ~TraceScope() { close(); }

  void enter() {
    if (trace_) fail(ErrorCode::kBadUsage, "a TraceScope was entered twice; make a new one");
    trace_ = std::make_unique<FunctionTrace>(name_);
    scopes().push_back(ScopeKind::kTrace);
  }
  /// Without finish() before, the function is abandoned and no variable changes.
  void close() {
    if (!trace_) return;
    trace_->abandon();
    trace_.reset();
    leave(ScopeKind::kTrace);
  }
  Tensor parameter(nb::handle shape, nb::handle dtype, const std::string& name) {
    if (!trace_) not_entered("TraceScope", "parameter");
    return trace_->parameter(dtype_of(dtype), shape_of(shape, true), name);
  }
  Function finish(nb::handle outputs) {
    if (!trace_) not_entered("TraceScope", "finish");
    const Tensors tensors = tensors_of(outputs, "finish");
    // Whatever happens, the scope has ended then.
    struct Close {
      TraceScope* scope;
      ~Close() { scope->close(); }
    } close{this};
    return trace_->finish(tensors);
  }

 private:
  std::string name_;
  std::unique_ptr<FunctionTrace> trace_;
};

class PythonAbstractScope {
 public:
  ~PythonAbstractScope() { close(); }
  void enter() {
    scope_ = std::make_unique<AbstractScope>();
    scopes().push_back(ScopeKind::kAbstract);
  }
  void close() {
    if (!scope_) return;
    scope_.reset();
    leave(ScopeKind::kAbstract);
  }
  Tensor parameter(nb::handle shape, nb::handle dtype) {
    if (!scope_) not_entered("abstract", "parameter");
    return scope_->parameter(dtype_of(dtype), shape_of(shape, true));
  }

 private:
  std::unique_ptr<AbstractScope> scope_;
};

class PythonInitScope {
 public:
  ~PythonInitScope() { close(); }
  void enter() {
    scope_ = std::make_unique<InitScope>();
    scopes().push_back(ScopeKind::kInit);
  }
  void close() {
    if (!scope_) return;
    scope_.reset();
    leave(ScopeKind::kInit);
  }

 private:
  std::unique_ptr<InitScope> scope_;
};

template <class Scope>
void add_context(nb::class_<Scope>& type) {
  type.def("__enter__",
           [](nb::handle self) {
             nb::inst_ptr<Scope>(self)->enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](Scope& self, nb::args) { self.close(); });
}

Tensors call_function(const Function& function, nb::handle args) {
  const Tensors tensors = tensors_of(args, "a function");
  return recorded([&] { return function(tensors); });
}

nb::list run_epoch(const Function& function, nb::handle data, nb::handle order, int64_t batch,
                   int64_t lo, int64_t hi, nb::handle collect) {
  const Tensors arrays = tensors_of(data, "run_epoch");
  const Tensor rows = order.is_none() ? Tensor() : tensor_of(order);
  if (PyObject_IsTrue(collect.ptr()) != 1) {
    return wrap_all(unlocked([&] { return function.run_epoch(arrays, rows, batch, lo, hi); }));
  }
  std::vector<int32_t> wanted;
  if (PyBool_Check(collect.ptr())) {
    wanted.resize(static_cast<size_t>(function.outputs()));
    std::iota(wanted.begin(), wanted.end(), 0);
  } else {
    check_iterable(collect, "run_epoch", "collect");
    for (nb::handle index : collect) {
      int32_t number = 0;
      if (!nb::try_cast(index, number)) {
        fail_type("run_epoch: argument 'collect' holds " + describe(index), "numbers of results",
                  "Pass True for all results");
      }
      wanted.push_back(number);
    }
  }
  return wrap_all(
      unlocked([&] { return function.collect_epoch(arrays, rows, batch, lo, hi, wanted); }));
}

nb::list variable_list(const std::vector<Variable>& variables) {
  nb::list list;
  for (const Variable& variable : variables) list.append(nb::cast(variable));
  return list;
}

Savepoint savepoint_of(nb::handle variables) {
  check_iterable(variables, "Savepoint", "variables");
  std::vector<Variable> all;
  for (nb::handle variable : variables) {
    if (!nb::isinstance<Variable>(variable)) {
      fail(ErrorCode::kBadUsage,
           "Savepoint takes a list of tracefire.Variable, got " + describe(variable) + " in it");
    }
    all.push_back(*nb::inst_ptr<Variable>(variable));
  }
  return Savepoint(std::move(all));
}

void bind_savepoint_class(nb::module_& m) {
  nb::class_<Savepoint>(m, "Savepoint",
                        "The values of variables at one moment, in memory of their own, to go back "
                        "to where a run fails on its data.")
      .def(
          "__init__",
          [](Savepoint* self, nb::handle variables) {
            new (self) Savepoint(savepoint_of(variables));
          },
          nb::arg("variables"))
      .def(
          "keep", [](Savepoint& s) { unlocked([&] { s.keep(); }); },
          "Copies the values there are now, on their devices; does not wait for it.")
      .def(
          "check", [](const Savepoint& s) { unlocked([&] { s.check(); }); },
          "Raises what went wrong in computing the values there are now.")
      .def(
          "restore", [](Savepoint& s) { unlocked([&] { s.restore(); }); },
          "The variables get the values of the last keep() back, also those that a failed run has "
          "lost. keep() comes first, once for each restore().");
}

void bind_function_class(nb::module_& m) {
  constructed(nb::class_<Function>(
                  m, "Function", nb::dynamic_attr(), nb::is_weak_referenceable(),
                  "A traced function: its graph, the variables it touches and the tensors it "
                  "captured. Compiled when it is first called."),
              "Function", "Trace one: with TraceScope() as scope: ... scope.finish(outputs)")
      .def(
          "__call__",
          [](const Function& f, nb::args args) { return wrap_all(call_function(f, args)); },
          "Runs the function and returns the list of its results; assigned variables hold their "
          "new values.")
      .def(
          "run_epoch", &run_epoch, nb::arg("data"), nb::arg("order").none(), nb::arg("batch"),
          nb::arg("lo"), nb::arg("hi"), nb::arg("collect") = false,
          "Steps lo to hi - 1 over data on the device: parameter k of step s gets the rows\n"
          "order[s * batch : (s + 1) * batch] of data[k]; order=None takes rows as they lie.\n"
          "Returns the last step's results or, with collect=True or [i, ...], all or these "
          "results\n"
          "of every step, joined along the first axis (scalars to a vector). Ctrl-C stops after a\n"
          "finished step.")
      .def("text", &Function::graph_text, "The graph, one line an operation.")
      .def(
          "program_text",
          [](const Function& f) { return unlocked([&] { return f.program_text(); }); },
          "The compiled program: steps, devices, kernels, and why others were refused.")
      .def(
          "explain", [](const Function& f) { return unlocked([&] { return f.program_text(); }); },
          "The same as program_text().")
      .def_prop_ro(
          "variables", [](const Function& f) { return variable_list(f.variables()); },
          "Variables that the function reads or assigns.")
      .def_prop_ro(
          "assigned", [](const Function& f) { return variable_list(f.assigned()); },
          "Those of the variables that a run assigns.")
      .def_prop_ro("can_fail", &Function::can_fail,
                   "Whether a run can fail on its data: a label or index out of range, a check, "
                   "host code.")
      .def_prop_ro("has_effects", &Function::has_effects,
                   "Whether a run is seen outside: it prints, asserts or calls host code.")
      .def_prop_ro("parameters", &Function::parameters, "How many arguments a call takes.")
      .def("__repr__", [](const Function& f) {
        return "<Function of " + std::to_string(f.parameters()) + " parameters and " +
               std::to_string(f.variables().size()) + " variables>";
      });
}

}  // namespace

void bind_function(nb::module_& m) {
  bind_function_class(m);
  bind_savepoint_class(m);
  nb::class_<TraceScope> trace(m, "TraceScope",
                               "Operations of this thread are recorded into a function instead of "
                               "being run. Leaving without finish() abandons it.");
  trace.def(nb::init<std::string>(), nb::arg("name") = "function")
      .def("parameter", &TraceScope::parameter, nb::arg("shape"), nb::arg("dtype"),
           nb::arg("name") = "",
           "The next parameter. None or a Dim in the shape makes one program serve many sizes.")
      .def("finish", &TraceScope::finish, nb::arg("outputs"),
           "Ends the trace and returns the Function with these results.");
  add_context(trace);
  nb::class_<PythonAbstractScope> abstract(
      m, "AbstractScope", "Operations of this thread only infer shapes and dtypes.");
  abstract.def(nb::init<>())
      .def("parameter", &PythonAbstractScope::parameter, nb::arg("shape"), nb::arg("dtype"));
  add_context(abstract);
  nb::class_<PythonInitScope> init(
      m, "InitScope",
      "Leaves every function being traced: what is computed inside is computed now.");
  init.def(nb::init<>());
  add_context(init);
  m.attr("abstract") = m.attr("AbstractScope");
  m.attr("init_scope") = m.attr("InitScope");
  m.def("is_abstract", &is_abstract, "Whether operations of this thread only infer shapes now.");
  m.def(
      "is_tracing", [] { return is_tracing() && !is_abstract(); },
      "Whether a function or region is being traced on this thread.");
}

}  // namespace tracefire::python
