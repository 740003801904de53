# SPDX-License-Identifier: Apache-2.0
"""trace_on() and trace_export(): the profile of a stretch."""

from tracefire.profiler import experimental as profiler
from tracefire import errors

_running = False


def trace_on(graph=True, profiler_outdir=None, **options):
    """With profiler=True starts a profile, which goes below `profiler_outdir`. Graphs are written
    by graph()."""
    global _running
    if not options.get("profiler", False) or _running:
        return
    if profiler_outdir is None:
        raise errors.coded("BadAttribute", "trace_on(profiler=True) needs profiler_outdir")
    profiler.start(profiler_outdir)
    _running = True


def trace_export(name, step=None, profiler_outdir=None):
    """Ends the profile of trace_on() and saves it."""
    trace_off(save=True)


def trace_off(save=False):
    """Ends the profile of trace_on()."""
    global _running
    if _running:
        _running = False
        profiler.stop(save=save)
