# SPDX-License-Identifier: Apache-2.0
"""Event files for TensorBoard, with TensorFlow's names (tf.summary).

    writer = tracefire.summary.create_file_writer("logs")
    with writer.as_default():
        tracefire.summary.scalar("loss", 0.5, step=1)

Each function returns True where it wrote, False where there is no default writer or record_if says
no. `step` may be a number, a variable or a tensor. Inside a function that is being traced, the
value is written whenever the function runs.
"""

import atexit
import os
import weakref

from tracefire import _core
from tracefire import errors
from tracefire._calls import described
from tracefire.summary import _values
from tracefire.summary import experimental
from tracefire.summary._state import record_if
from tracefire.summary._state import should_record_summaries
from tracefire.summary._state import state
from tracefire.summary._tracing import trace_export
from tracefire.summary._tracing import trace_off
from tracefire.summary._tracing import trace_on

_SCALAR, _TENSOR, _BLOBS = 1, 2, 3  # TensorBoard's DataClass

_open = weakref.WeakSet()


@atexit.register
def _close_all():
    for writer in list(_open):
        writer.close()


class SummaryWriter:
    """Writes one event file; made by create_file_writer()."""

    def __init__(self, file):
        self._file = file
        _open.add(self)

    def as_default(self, step=None):
        """Values go to this writer inside the `with` block; `step` is the default step there."""
        return state.using(writer=self, step=step)

    def set_as_default(self, step=None):
        """Values of this thread go to this writer from now on."""
        state.writer = self
        if step is not None:
            state.step = step

    def init(self):
        """The file is there from the start."""

    def flush(self):
        if self._file is not None:
            self._file.flush()

    def close(self):
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def path(self):
        return None if self._file is None else self._file.path

    def _write(self, method, *arguments):
        if self._file is None:
            raise RuntimeError("SummaryWriter is already closed; create another one")
        getattr(self._file, method)(*arguments)


class _NoopWriter(SummaryWriter):
    def __init__(self):
        super().__init__(None)

    def _write(self, method, *arguments):
        pass


def create_file_writer(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None):
    """A writer of an event file in the folder `logdir`, which is made where it is missing."""
    if logdir is None:
        return create_noop_writer()
    if not isinstance(logdir, (str, os.PathLike)):
        raise _wrong("create_file_writer", "logdir", logdir, "the path of a folder")
    for name, number in (("max_queue", max_queue), ("flush_millis", flush_millis)):
        if number is not None and not hasattr(type(number), "__int__"):
            raise _wrong("create_file_writer", name, number, "a number, or None")
    return SummaryWriter(
        _core.EventFileWriter(
            os.fspath(logdir),
            max_queue=10 if max_queue is None else int(max_queue),
            flush_seconds=120.0 if flush_millis is None else int(flush_millis) / 1000,
            filename_suffix=".v2" if filename_suffix is None else str(filename_suffix),
        )
    )


def _wrong(function, argument, value, expected):
    return errors.raised_here(
        "BadUsage",
        f"summary.{function}: argument {argument!r} is {described(value)}",
        expected,
        f"help(tracefire.summary.{function}) says more",
        errors.DTypeError,
    )


def create_noop_writer():
    """A writer that writes nothing."""
    return _NoopWriter()


def _record(name, data, step, method, prepare, *rest):
    """Writes `data` with the default writer, now or whenever the function being traced runs."""
    writer = state.writer
    if writer is None or not should_record_summaries():
        return False
    step = state.step if step is None else step
    if step is None:
        raise errors.coded(
            "BadAttribute",
            "No step set. Please specify one either through the `step` argument or through "
            "tracefire.summary.experimental.set_step()"
        )

    def write(value, at):
        writer._write(method, name, prepare(value), int(at), *rest)

    if _core.is_tracing() and _values.is_symbolic(data):
        _core.host_call(write, [data, _values.as_tensor(step)], [])
    else:
        write(_values.to_numpy(data), _values.to_numpy(step))
    return True


def scalar(name, data, step=None, description=None):
    """A number, shown as a curve."""
    return _record(name, data, step, "scalar", _values.number, description or "")


def histogram(name, data, step=None, buckets=None, description=None):
    """How the elements of `data` are distributed."""
    buckets = 30 if buckets is None else int(buckets)
    return _record(name, data, step, "histogram", _values.doubles, buckets, description or "")


def image(name, data, step=None, max_outputs=3, description=None):
    """Images [count, height, width, channels] of 1 to 4 channels; floats lie in [0, 1]."""
    return _record(name, data, step, "image", _values.pixels, int(max_outputs), description or "")


def text(name, data, step=None, description=None):
    """Markdown: a string or an array of strings."""
    texts, shape = _values.strings(data)
    return _write_texts(name, texts, shape, step, "text", b"", _TENSOR)


def _write_texts(tag, texts, shape, step, plugin, content, data_class):
    writer = state.writer
    if writer is None or not should_record_summaries():
        return False
    step = state.step if step is None else step
    if step is None:
        raise errors.coded("BadAttribute", "No step set; give `step` or call experimental.set_step()")
    at = int(_values.to_numpy(step))
    writer._write("write", tag, texts, shape, at, plugin, content, data_class)
    return True


def write(tag, tensor, step=None, metadata=None, name=None):
    """Strings for any plugin; `metadata` is a SummaryMetadata message or has its fields."""
    plugin = getattr(metadata, "plugin_data", None)
    texts, shape = _values.strings(tensor)
    return _write_texts(
        tag,
        texts,
        shape,
        step,
        getattr(plugin, "plugin_name", ""),
        getattr(plugin, "content", b""),
        int(getattr(metadata, "data_class", 0)),
    )


def graph(graph_data):
    """A traced function (tracefire._core.Function), shown in the graph view."""
    writer = state.writer
    if writer is None:
        return False
    if not isinstance(graph_data, _core.Function):
        raise errors.coded("DTypeMismatch", f"a traced function is expected, got {type(graph_data).__name__}")
    writer._write("graph", graph_data)
    return True


def flush(writer=None, name=None):
    """Writes out what waits in `writer`, by default in the default writer."""
    writer = state.writer if writer is None else writer
    if writer is not None:
        if not isinstance(writer, SummaryWriter):
            raise _wrong("flush", "writer", writer, "a SummaryWriter, or None")
        writer.flush()


__all__ = [
    "SummaryWriter",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
    "flush",
    "graph",
    "histogram",
    "image",
    "record_if",
    "scalar",
    "should_record_summaries",
    "text",
    "trace_export",
    "trace_off",
    "trace_on",
    "write",
]
