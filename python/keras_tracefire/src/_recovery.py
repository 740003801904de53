# SPDX-License-Identifier: Apache-2.0
"""The state after the last whole good step, kept over steps that can fail on their data.

A step that fails (a label or an index out of range, a check, code of the user's that raises) leaves
weights, optimizer and metrics that nobody can read. Where a step can fail, the variables that it
assigns are copied before an epoch; once the failure has been reported, they get their values back
and the steps before the failing one are run again. Nothing more is done in an epoch that goes well.
"""

import numpy as np

from keras.src import tree
from keras_tracefire.src._steps import read
from tracefire import _core
from tracefire import errors

# Of batches that are gone once they have been run on: steps between two looks at what came of them.
_MOST_STEPS = 32
_MOST_ELEMENTS = 16 << 20
# Parts of a stretch that is run again to find the step that failed.
_PARTS = 16


class Failed:
    """The step that failed: its number (None: the only one, or not known); the rows among which it
    came up where the data are whole arrays whose order is known, else its batch. Where it is one of
    several steps, `first` is the number of the first of them and how many rows each has."""

    def __init__(self, step, rows=None, data=None, first=None):
        self.step, self.rows, self.data, self.first = step, rows, data, first


def _unique(slots):
    return list({id(slot): slot for slot in slots}.values())


class _Keeper:
    """Keeps the values of variables from before a step on."""

    def __init__(self, functions, model, say):
        """Args:
            functions: what will be run; None among them is a step that runs operation by operation.
            model: whose variables such a step may assign.
            say: called with why nothing can be kept.
        """
        eager = None in functions
        functions = [f for f in functions if f is not None]
        slots = []
        if eager or any(f.can_fail for f in functions):
            for function in functions:
                slots += function.assigned
        if eager:
            slots += _slots_of(model)
        # What is seen outside must not happen twice, so no step is run again.
        self.one_by_one = eager or any(f.has_effects for f in functions)
        self.active = bool(slots)
        self._point = _core.Savepoint(_unique(slots))
        self._first = None  # the step whose state is kept
        self._say = say

    def before(self, step):
        """To be called before steps from `step` on are run."""
        if not self.active or (self._first is not None and not self.one_by_one):
            return
        if self._first is not None:
            self.settle()
        try:
            self._point.keep()
            self._first = step
        except MemoryError:
            self.active = False
            self._say("the memory of the device does not hold a second copy of its state")

    def settle(self):
        """Raises what went wrong in the steps so far; what was kept is given up."""
        if self._first is not None:
            self._point.check()
            self._first = None

    def recover(self, end, run):
        """After a failure: goes back to the state after the last good step.

        Args:
            end: one behind the last step that may have run.
            run: runs the steps from its first argument to before its second.

        Returns: the step that failed; None where the state is good, or nothing was kept.
        """
        first, self._first = self._first, None
        if first is None or self._is_good():
            return None
        self._point.restore()
        return first if self.one_by_one or end - first == 1 else self._run_again(first, end, run)

    def _is_good(self):
        try:
            self._point.check()
        except errors.Error:
            return False
        return True

    def _run_again(self, first, end, run):
        size = -(-(end - first) // _PARTS)
        for lo in range(first, end, size):
            hi = min(lo + size, end)
            self._point.keep()
            try:
                run(lo, hi)
                self._point.check()
            except Exception:
                self._point.restore()
                return lo if hi - lo == 1 else self._run_again(lo, hi, run)
        return None  # it does not fail again


def _slots_of(model):
    optimizer = getattr(model, "optimizer", None)
    variables = list(model.variables) + list(model.metrics_variables)
    variables += list(getattr(optimizer, "variables", ()))
    slots = (getattr(v, "_slot", v if isinstance(v, _core.Variable) else None) for v in variables)
    return [slot for slot in slots if slot is not None]


class EpochSteps:
    """The steps of an epoch over data on the device."""

    def __init__(self, runner, order, model, say):
        self._runner, self._order = runner, order
        self._keeper = _Keeper(runner.functions(), model, say)
        self._end = 0
        self.one_by_one = self._keeper.active and self._keeper.one_by_one

    def watched(self, chunks):
        """The chunks, each kept over."""
        for begin, end, run in chunks:
            yield begin, end, lambda run=run, begin=begin, end=end: self._run(begin, end + 1, run)

    def _run(self, begin, end, run):
        self._keeper.before(begin)
        self._end = end
        return run()

    def settle(self):
        self._keeper.settle()

    def recover(self):
        """Goes back to the state after the last good step; gives what failed, or None."""
        step = self._keeper.recover(self._end, lambda lo, hi: self._runner.run(self._order, lo, hi))
        return None if step is None else Failed(step, self._runner.rows(self._order, step))


class BatchSteps:
    """Steps on batches that are not seen again; called with a list of them, as a step is."""

    def __init__(self, step, model, say, each=False, numbered=True, rows=lambda step: None):
        """Args:
            each: results of every step are read.
            numbered: there are several batches, which messages tell apart.
            rows: gives the rows of a step's batch, or None where they are not known.
        """
        self._step, self._model, self._say, self._rows = step, model, say, rows
        self._numbered = numbered
        self._most = 1 if each else _MOST_STEPS
        self._functions, self._keeper = [], None
        self._batches, self._elements, self._done = [], 0, 0

    def __call__(self, batches):
        out = None
        for batch in batches:
            out = self._run(batch)
        return out

    def _run(self, batch):
        batch, function, call = self._step.prepared(batch)
        if self._keeper is None or function not in self._functions:
            self.settle()
            self._functions.append(function)
            self._keeper = _Keeper(self._functions, self._model, self._say)
            self._most = 1 if self._keeper.one_by_one else self._most
        elif len(self._batches) >= self._most or self._elements > _MOST_ELEMENTS:
            self.settle()
        self._keeper.before(0)
        if self._keeper.active:
            self._batches.append(batch)
            self._elements += sum(x.size for x in tree.flatten(batch) if x is not None)
        else:
            self._done += 1
        return call()

    def settle(self):
        if self._keeper is not None:
            self._keeper.settle()
        self._done += len(self._batches)
        self._batches, self._elements = [], 0

    def recover(self):
        """As that of EpochSteps."""
        if self._keeper is None:
            return None
        step = self._keeper.recover(len(self._batches), self._run_again)
        if step is None:
            return None
        number = self._done + step if self._numbered else None
        rows = self._rows(number)
        return Failed(number, rows, None if rows is not None else self._batches[step])

    def _run_again(self, lo, hi):
        for batch in self._batches[lo:hi]:
            self._step([batch])


class Predictions:
    """What steps without a state of their own gave; knows which of it cannot be read."""

    def __init__(self, rows):
        """Args:
            rows: gives the rows of a step's batch, or None where they are not known.
        """
        self._rows = rows
        self._running, self._parts = None, []

    def watched(self, chunks):
        """The chunks, each remembered."""
        for begin, end, run in chunks:
            yield begin, end, lambda run=run, steps=(begin, end): self._run(steps, run)

    def _run(self, steps, run):
        self._running = steps
        out = run()
        self._parts.append((steps, out))
        return out

    def recover(self):
        """What failed, as _recovery.Failed: the first of the results that cannot be read, else what
        ran last."""
        steps = next((s for s, out in self._parts if not _can_be_read(out)), self._running)
        if steps is None:
            return None
        begin, end = steps
        rows = [self._rows(step) for step in range(begin, end + 1)]
        if rows[0] is None:
            return Failed(begin if begin == end else None)
        if begin == end:
            return Failed(begin, rows[0])
        return Failed(None, np.concatenate(rows), first=(begin, len(rows[0])))


def _can_be_read(out):
    try:
        read(out)
    except errors.Error:
        return False
    return True
