# SPDX-License-Identifier: Apache-2.0
"""Makes an unmodified Keras find this backend.

Keras 3.16 and newer import a backend's package by name, but only for the names on a list: the name
is added to the list as the modules that hold it are imported.

Older versions choose the backend in `if backend() == "tensorflow": ... elif backend() == "jax": ...
else: raise` at the top of a handful of modules. Such a module is compiled from its own source with
one branch more, made in memory from the branch for JAX. No list of modules is needed: the pattern
finds them. Nothing is written to disk, and with another backend chosen nothing is touched.
"""

import ast
import copy
import importlib
import importlib.abc
import importlib.machinery
import os
import sys

NAME = "tracefire"
# Modules that were given a branch, in the order of their import.
branched = []

_TEMPLATE = "jax"
_TEMPLATE_PACKAGE = f"keras.src.backend.{_TEMPLATE}"
_LEGACY_PACKAGE = "keras_tracefire._legacy"
# Where the parts of the template's package are in ours.
_MODULES = {
    "": _LEGACY_PACKAGE,
    "core": "keras_tracefire.src.ops.core",
    "export": "keras_tracefire.src.export",
    "layer": "keras_tracefire.src.layer",
    "optimizer": "keras_tracefire.src.optimizer",
    "trainer": "keras_tracefire.src.trainer",
}
_CLASSES = {
    "JaxExportArchive": "SavedModelExportArchive",
    "JaxLayer": "BackendLayer",
    "JaxOptimizer": "TracefireOptimizer",
    "JAXTrainer": "TracefireTrainer",
}


def _is_test_for_template(test):
    """`backend() == "jax"`, also spelled `backend.backend()` or `config.backend()`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Call):
        return False
    callee = test.left.func
    name = getattr(callee, "id", None) or getattr(callee, "attr", None)
    return (
        name == "backend"
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == _TEMPLATE
    )


def _uses_template(statement):
    if isinstance(statement, ast.ImportFrom):
        return (statement.module or "").startswith(_TEMPLATE_PACKAGE)
    return isinstance(statement, ast.Assign) and f"backend.{_TEMPLATE}." in ast.unparse(statement)


class _Rename(ast.NodeTransformer):
    """Turns a copy of the template's branch into ours."""

    def visit_ImportFrom(self, node):
        module = node.module or ""
        if module == _TEMPLATE_PACKAGE or module.startswith(_TEMPLATE_PACKAGE + "."):
            node.module = _MODULES[module[len(_TEMPLATE_PACKAGE) + 1 :]]
            for alias in node.names:
                ours = _CLASSES.get(alias.name, alias.name)
                if ours != alias.name and alias.asname is None:
                    alias.asname = alias.name
                alias.name = ours
        return node

    def visit_Attribute(self, node):
        # Keras 3.5: `BackendVariable = backend.jax.Variable`; the package's names are in `backend`.
        self.generic_visit(node)
        is_backend = isinstance(node.value, ast.Name) and node.value.id == "backend"
        if node.attr == _TEMPLATE and is_backend:
            return ast.copy_location(ast.Name("backend", ast.Load()), node)
        return node


def add_branches(source, filename):
    """The syntax tree of `source` with our branches, and how many were added."""
    tree = ast.parse(source, filename)
    count = 0
    for i, statement in enumerate(tree.body):
        link = statement
        while isinstance(link, ast.If):
            if _is_test_for_template(link.test) and any(map(_uses_template, link.body)):
                branch = ast.If(
                    test=copy.deepcopy(link.test),
                    body=copy.deepcopy(link.body),
                    orelse=[statement],
                )
                branch.test.comparators[0] = ast.Constant(NAME)
                tree.body[i] = ast.copy_location(_Rename().visit(branch), statement)
                count += 1
                break
            link = link.orelse[0] if len(link.orelse) == 1 else None
    return ast.fix_missing_locations(tree), count


def _patch_dynamic_backend(module):
    """Preprocessing layers ask a `DynamicBackend`, which answers None for an unknown name."""
    cls = getattr(module, "DynamicBackend", None)
    if cls is None or _has_plugins():
        return
    get, put = cls.__getattr__, cls.set_backend

    def __getattr__(self, name):
        if self.__dict__.get("_backend") == NAME:
            return getattr(importlib.import_module("keras.src.backend"), name)
        return get(self, name)

    def set_backend(self, backend):
        if backend == NAME:
            self._backend = NAME
        else:
            put(self, backend)

    cls.__getattr__, cls.set_backend = __getattr__, set_backend


def _keep_64_bit_integers(module):
    """Promotion keeps int64 and uint64, as it keeps int64 with TensorFlow: nothing is cut."""
    if module.config.backend() == NAME:
        module.BIT64_TO_BIT32_DTYPE.update(int64="int64", uint64="uint64")


def _write_files_whole(module):
    """A file is replaced by a whole one or not at all."""
    if not _is_chosen():
        return
    from keras_tracefire.src import _saving

    for name, endings in _WRITERS.items():
        if hasattr(module, name):
            setattr(module, name, _saving.written_whole(getattr(module, name), endings))


_WRITERS = {
    "save_model": (".keras",),
    "save_weights_only": (".weights.h5",),
    "save_model_to_hdf5": (".h5", ".hdf5"),
}
_AFTER_IMPORT = {
    "keras.src.saving.saving_lib": _write_files_whole,
    "keras.src.legacy.saving.legacy_h5_format": _write_files_whole,
    "keras.src.utils.backend_utils": _patch_dynamic_backend,
    "keras.src.backend.common.dtypes": _keep_64_bit_integers,
}


def _is_chosen():
    from keras.src.backend import config

    return config.backend() == NAME


# Mistakes of Keras's own, with every backend: what stands in a module, and what was meant.
_CORRECTIONS = {
    # A model's own variables, of which it has none, instead of those of its layers: the optimizer of
    # a loaded .h5 file knew no weight, and fit() raised "Unknown variable".
    "keras.src.legacy.saving.legacy_h5_format": (
        b"optimizer.build(model._trainable_variables)",
        b"optimizer.build(model.trainable_variables)",
    ),
}


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        if fullname in _CORRECTIONS and _is_chosen():
            data = self.get_data(self.path).replace(*_CORRECTIONS[fullname])
            return compile(data, self.path, "exec", dont_inherit=True)
        if not _has_plugins():
            data = self.get_data(self.path)
            markers = (_TEMPLATE_PACKAGE.encode(), f"backend.{_TEMPLATE}.".encode())
            if any(marker in data for marker in markers):
                tree, count = add_branches(data.decode("utf-8"), self.path)
                if count:
                    branched.append(fullname)
                    return compile(tree, self.path, "exec", dont_inherit=True)
        return super().get_code(fullname)

    def exec_module(self, module):
        super().exec_module(module)
        names = module.__dict__.get("PLUGGABLE_BACKENDS")
        if names:
            module.PLUGGABLE_BACKENDS = names | {NAME}
        after = _AFTER_IMPORT.get(module.__name__)
        if after:
            after(module)


_plugins = None


def _has_plugins():
    """True if the installed Keras looks for backends in packages of their own (3.16)."""
    global _plugins
    if _plugins is None:
        spec = importlib.machinery.PathFinder.find_spec("keras", None)
        path = os.path.join(spec.submodule_search_locations[0], "src", "backend", "config.py")
        with open(path, encoding="utf-8") as file:
            _plugins = "PLUGGABLE_BACKENDS" in file.read()
    return _plugins


class _Finder(importlib.abc.MetaPathFinder):
    tracefire_keras = True

    def find_spec(self, fullname, path, target=None):
        if not fullname.startswith("keras.src.") or fullname.startswith(_TEMPLATE_PACKAGE):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return None
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _too_late():
    from tracefire import errors

    chosen = getattr(sys.modules.get("keras.src.backend.config"), "_BACKEND", "another one")
    return errors.raised_here(
        "BadUsage",
        f"Keras was imported before the backend tracefire could be, and has chosen {chosen!r}",
        "KERAS_BACKEND=tracefire in the environment or in os.environ before `import keras`",
        "Where the package was not installed by pip, `import tracefire` before `import keras`, too",
        errors.ImportedTooLateError,
    )


def install():
    """Takes effect for Keras modules imported from now on."""
    # keras.config.set_backend() forgets all modules named keras*, this one too; the finder stays.
    if any(getattr(finder, "tracefire_keras", False) for finder in sys.meta_path):
        return
    if "keras.src.backend" in sys.modules:
        raise _too_late()
    sys.meta_path.insert(0, _Finder())
