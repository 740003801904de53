# SPDX-License-Identifier: Apache-2.0
"""The live view in a pseudo-terminal: what it draws, its keys, and that the terminal is put back."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

GPU = {"name": "NVIDIA H200", "uuid": "GPU-aa", "values": {"busy": 87}}


class Screen:
    """What a terminal would show: understands what the monitor writes, and nothing else."""

    def __init__(self, machine, *arguments, columns=80, rows=24, **more):
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        environment = machine.environment(TERM="xterm", **more)
        from conftest import PROGRAM
        self.process = subprocess.Popen([str(PROGRAM), *arguments], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                                        env=environment, start_new_session=True)
        self.raw = ""

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines = [""] * rows
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds=0.1):
        end = time.monotonic() + seconds
        text = b""
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                try:
                    text += os.read(self.master, 65536)
                except OSError:
                    break
        self.raw += text.decode(errors="replace")
        self.lines = [""] * self.rows
        for match in re.finditer(r"\x1b\[(\d+);1H(.*?)(?=\x1b\[\d+;1H|\x1b\[\?|\x1b\[0m\x1b\[2J|$)|(\x1b\[2J)", self.raw, re.S):
            if match[3]:
                self.lines = [""] * self.rows
            elif int(match[1]) <= self.rows:
                line, erase, _ = re.sub(r"\x1b\[[\d;]*m", "", match[2]).partition("\x1b[K")
                # Past a full line the cursor stays on its last character, and erasing takes that too.
                self.lines[int(match[1]) - 1] = line[:self.columns - 1] if erase and len(line) >= self.columns else line
        return self.raw

    def wait_for(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()
            if re.search(pattern, self.text()):
                return
        pytest.fail(f"{pattern!r} does not appear in\n{self.text()}\n{self.process.poll()}")

    def text(self):
        return "\n".join(self.lines)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def end(self, seconds=60):
        status = self.process.wait(seconds)
        self.read(0.3)
        return status

    def assert_put_back(self):
        assert self.raw.count("\x1b[?1049h") == self.raw.count("\x1b[?1049l") > 0
        assert self.raw.rindex("\x1b[?1049l") > self.raw.rindex("\x1b[?1049h")
        assert "\x1b[?25h" in self.raw[self.raw.rindex("\x1b[?1049h"):]
        assert termios.tcgetattr(self.slave) == self.before


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "training"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("columns, rows", [(80, 24), (200, 50), (40, 10)])
def test_draws_within_the_screen(machine, child, columns, rows):
    machine.script({"gpus": [GPU | {"processes": [{"pid": child.pid, "memory": 1 << 30, "sm": 50}]}, GPU]})
    screen = Screen(machine, "--every", "200ms", columns=columns, rows=rows)
    screen.wait_for("NVIDIA H200" if columns >= 80 else "healthy")
    screen.read(1)
    assert "tracefire monitor" in screen.lines[0]
    # Keys that have no room are left out whole.
    assert re.fullmatch(r"q quit  h help(  \S+ (choose|sort|end process|pause|interval|reverse))*", screen.lines[-1].strip())
    assert max(map(len, screen.lines)) <= columns
    # What is asked first is there at any width: how busy, how full, how much power, whose processes.
    for words in ("healthy", "87%", "94.2/140.4 GiB", "612", str(child.pid), "1.0 GiB"):
        assert words in screen.text(), words
    if columns >= 80:
        assert screen.lines[0].endswith("UTC \u00b7 every 0.2 s")
        assert "87%" in screen.text() and "94.2/140.4 GiB" in screen.text() and "612/700 W" in screen.text()
        assert str(child.pid) in screen.text()
    screen.press("q")
    assert screen.end() == 0
    screen.assert_put_back()


def test_sixteen_gpus_leave_room_for_processes(machine, child):
    machine.script({"copies": 16, "gpus": [GPU | {"processes": [{"pid": child.pid, "memory": 1 << 30}]}]})
    screen = Screen(machine, "--every", "200ms")
    screen.wait_for("PID")
    assert screen.text().count("NVIDIA H200") == 16
    assert re.search(r"1 to \d+ of 16 processes", screen.text())
    screen.press("q")
    assert screen.end() == 0


def test_resize(machine):
    machine.script({"gpus": [GPU]})
    screen = Screen(machine, "--every", "200ms")
    screen.wait_for("NVIDIA H200")
    screen.resize(160, 40)
    screen.process.send_signal(signal.SIGWINCH)
    screen.wait_for("SM CLOCK")
    assert re.search(r"\bquit\b", screen.lines[39])
    screen.press("q")
    assert screen.end() == 0


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131),
                                            (signal.SIGABRT, -6), (signal.SIGSEGV, -11)])
def test_signals_put_the_terminal_back(machine, number, status):
    machine.script({"gpus": [GPU]})
    screen = Screen(machine, "--every", "200ms")
    screen.wait_for("NVIDIA H200")
    screen.process.send_signal(number)
    assert screen.end() == status
    screen.assert_put_back()


def test_stop_and_go_on(machine):
    machine.script({"gpus": [GPU]})
    screen = Screen(machine, "--every", "200ms")
    screen.wait_for("NVIDIA H200")
    screen.process.send_signal(signal.SIGTSTP)
    deadline = time.monotonic() + 60
    while "\x1b[?1049l" not in screen.raw:
        screen.read()
        assert time.monotonic() < deadline
    screen.process.send_signal(signal.SIGCONT)
    screen.wait_for("NVIDIA H200")
    screen.press("q")
    assert screen.end() == 0
    screen.assert_put_back()


def test_keys(machine):
    machine.script({"gpus": [GPU]})
    screen = Screen(machine, "--every", "1s")
    screen.wait_for("every 1 s")
    screen.press("+")
    screen.wait_for("every 0.5 s")
    screen.press("-")
    screen.wait_for("every 1 s")
    screen.press(" ")
    screen.wait_for("paused")
    screen.press(" ")
    screen.wait_for("every 1 s")
    screen.press("h")
    screen.wait_for("choose a process")
    screen.press("\x1b")
    screen.wait_for("NVIDIA H200")
    screen.press("s")
    screen.wait_for("Sorted by sm")
    screen.press("\x1b[99;5u\x1b[Z")  # keys that are not known do nothing
    screen.press("k")
    screen.wait_for("There is no process to end")
    screen.press("\x03")  # Ctrl-C, as a signal of the terminal or as a key
    screen.process.send_signal(signal.SIGINT)
    assert screen.end() == 0
    screen.assert_put_back()


@pytest.mark.slow
def test_killing_needs_a_confirmation(machine, child):
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "other"])
    try:
        machine.script({"gpus": [GPU | {"processes": [{"pid": child.pid, "memory": 2 << 30}, {"pid": other.pid, "memory": 1 << 30}]}]})
        screen = Screen(machine, "--every", "200ms")
        screen.wait_for(str(other.pid))
        screen.press("k")
        screen.wait_for(rf"Send SIGTERM to {child.pid} ")
        screen.read(1)
        assert f"Send SIGTERM to {child.pid} " in screen.lines[-1]  # it waits for an answer
        screen.press("n")
        screen.wait_for("Nothing was sent")
        time.sleep(0.3)
        assert child.poll() is None and other.poll() is None
        screen.press("\x1b[B")  # the second process
        screen.press("K")
        screen.wait_for(rf"Send SIGKILL to {other.pid} ")
        screen.press("y")
        assert other.wait(60) == -signal.SIGKILL
        assert child.poll() is None
        screen.wait_for("Sent to")
        screen.press("q")
        assert screen.end() == 0
    finally:
        other.kill()
        other.wait()


def test_read_only(machine, child):
    machine.script({"gpus": [GPU | {"processes": [{"pid": child.pid, "memory": 1}]}]})
    screen = Screen(machine, "--every", "200ms", "--read-only")
    screen.wait_for(str(child.pid))
    assert "end process" not in screen.lines[-1]
    screen.press("ky")
    screen.wait_for("switched off")
    assert child.poll() is None
    screen.press("q")
    assert screen.end() == 0


def test_names_from_outside_stay_text(machine, tmp_path):
    script = tmp_path / "evil.py"
    script.write_text("import ctypes, time\nctypes.CDLL(None).prctl(15, b'\\x1b[2J\\x1b]0;x', 0, 0, 0)\ntime.sleep(600)\n")
    evil = subprocess.Popen([sys.executable, str(script), "\x1b[31m\x9b5n\u202e"])
    try:
        machine.script({"gpus": [GPU | {"name": "H200 \x1b[5m\x07", "processes": [{"pid": evil.pid, "memory": 1}]}]})
        screen = Screen(machine, "--every", "200ms", columns=160)
        screen.wait_for(str(evil.pid))
        screen.press("q")
        assert screen.end() == 0
    finally:
        evil.kill()
        evil.wait()
    allowed = re.compile(r"\x1b\[(\d+;1H|[0-9;]*m|2J|K|\?1049[hl]|\?25[hl]|\?7[hl])")
    rest = allowed.sub("", screen.raw)
    assert "\x1b" not in rest and "\x07" not in rest and "\x9b" not in rest and "\u202e" not in rest
    assert "\x1b[31m\\x" not in screen.raw and "[5m" in rest


def test_no_colors_and_no_unicode(machine):
    machine.script({"gpus": [GPU]})
    screen = Screen(machine, "--every", "200ms", NO_COLOR="1", LANG="C", LC_CTYPE="C")
    screen.wait_for("NVIDIA H200")
    screen.read(1)
    assert screen.raw.isascii() and not re.search(r"\x1b\[[1-9][\d;]*m", screen.raw)
    screen.press("q")
    assert screen.end() == 0


def test_dumb_terminal_gets_text(machine):
    machine.script({"gpus": [GPU]})
    master, slave = pty.openpty()
    process = subprocess.run([str(__import__("conftest").PROGRAM)], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                             env=machine.environment(TERM="dumb"), timeout=30)
    text = os.read(master, 65536).decode()
    assert process.returncode == 0 and "NVIDIA H200" in text and "\x1b" not in text


@pytest.mark.slow
def test_nvml_is_missing(machine):
    machine.script({"init": 9})
    screen = Screen(machine, "--every", "200ms")
    screen.wait_for("No GPU: NVML could not start: Driver Not Loaded")
    machine.script({"gpus": [GPU]})  # the driver comes
    screen.wait_for("NVIDIA H200", 15)
    screen.press("q")
    assert screen.end() == 0
    screen.assert_put_back()


@pytest.mark.deep
def test_driver_hangs(machine):
    machine.script({"gpus": [GPU]})
    screen = Screen(machine, "--every", "200ms")
    screen.wait_for("NVIDIA H200")
    machine.script({"gpus": [GPU], "hang": {"function": "nvmlDeviceGetPowerUsage", "seconds": 300}})
    screen.wait_for("NVML has not answered for", 15)
    screen.press("q")
    assert screen.end(15) == 0
    screen.assert_put_back()
