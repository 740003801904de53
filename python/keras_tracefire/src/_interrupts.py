# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C is not lost where what runs within a step swallows it, and breaks nothing that is half made.

optree, with which Keras takes nested data apart, clears whatever error it meets while it asks for
an attribute, and some places of Keras and of users' programs say `except:`. A KeyboardInterrupt that
is raised there vanishes, and the training goes on as if nobody had pressed a key.
"""

import contextlib
import signal
import threading

_pressed = False
_waits = False  # the first press does


def _handle(number, frame):
    global _pressed
    if _waits and not _pressed:
        _pressed = True
        return
    _pressed = True
    signal.default_int_handler(number, frame)


@contextlib.contextmanager
def kept():
    """Within it, raise_if_swallowed() raises an interrupt that did not come through; so does its end.

    Handlers of the program's own are left alone, and so are other threads than the main one, in
    which Python handles no signals.
    """
    global _pressed
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield  # also within another kept()
        return
    _pressed = False
    signal.signal(signal.SIGINT, _handle)
    try:
        yield
        raise_if_swallowed()
    finally:
        _pressed = False
        if signal.getsignal(signal.SIGINT) is _handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def raise_if_swallowed():
    if _pressed and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


@contextlib.contextmanager
def held_back():
    """Has an interrupt come at the end of it, and a second one at once.

    Keras calls an optimizer built before all its variables are made, and a layer that is built half
    cannot be built again.
    """
    global _waits
    with kept():
        if (
            threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not _handle
        ):
            yield
            return
        _waits = True
        try:
            yield
        finally:
            _waits = False
        raise_if_swallowed()
