# SPDX-License-Identifier: Apache-2.0
"""Alerts on stderr, to a webhook and as exit status."""
import http.server
import json
import os
import socket
import threading
import time

import pytest

GPU = {"name": "NVIDIA H200", "uuid": "GPU-aa", "values": {"busy": 87}}
FULL = {"name": "NVIDIA H200", "uuid": "GPU-aa", "values": {"memory_used": 149e9, "memory_reserved": 0}}


class Hook(threading.Thread):
    """Receives POSTs; `answer` is the status that it gives, None says nothing at all."""

    def __init__(self, answer=200):
        super().__init__(daemon=True)
        self.bodies = bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
                if answer is None:
                    time.sleep(20)
                self.send_response(answer)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts?room=7"
        self.start()

    def run(self):
        self.server.serve_forever()


def test_quiet_where_all_is_well(machine):
    machine.script({"gpus": [GPU]})
    done = machine.run("--alerts", "all", "--every", "100ms", "--count", "5")
    assert done.returncode == 0 and done.stderr == "" and done.stdout == ""


@pytest.mark.slow
def test_stderr_once_until_it_ends(machine):
    machine.script({"gpus": [FULL]})
    process = machine.start("--alerts", "memory_nearly_full", "--every", "100ms", "--duration", "120s")
    lines = [process.stderr.readline().rstrip()]
    machine.script({"gpus": [GPU]})
    lines.append(process.stderr.readline().rstrip())
    process.terminate()
    _, rest = process.communicate(timeout=60)
    assert rest == "" and process.returncode == 143
    assert lines[0] == "tracefire: warning: alert memory_nearly_full: GPU 0 (NVIDIA H200): memory 99 % full: 139 GiB of 140 GiB"
    assert lines[1].endswith("GPU 0 (NVIDIA H200): ended")


def test_exit_status(machine):
    machine.script({"gpus": [GPU]})
    assert machine.run("--fail-on-alert", "--every", "100ms", "--count", "3").returncode == 0
    machine.script({"gpus": [FULL]})
    begin = time.monotonic()
    done = machine.run("--fail-on-alert", "--every", "100ms", "--duration", "120s", timeout=150)
    assert done.returncode == 3 and time.monotonic() - begin < 60  # not all its time
    assert machine.run("--once", "--json", "--fail-on-alert").returncode == 3
    assert machine.run("--once", "--json", "--alerts", "all").returncode == 0


def test_xid_and_lost_gpu(machine):
    machine.script({"gpus": [GPU]})
    process = machine.start("--alerts", "all", "--every", "100ms", "--duration", "120s", "--json")
    process.stdout.readline()  # it watches
    reader = threading.Thread(target=process.stdout.read)  # a full pipe would hold it up
    reader.start()
    talk = ""
    for alert, trouble in (("xid_error", {"xids": [{"id": 1, "xid": 79}]}), ("gpu_lost", {"fail": {"nvmlDeviceGetMemoryInfo": 15}})):
        machine.script({"gpus": [GPU | trouble]})
        while f"alert {alert}" not in talk and (line := process.stderr.readline()):
            talk += line
    process.terminate()
    process.wait(60)
    reader.join(60)
    assert "error: alert xid_error: GPU 0 (NVIDIA H200): the driver reported Xid 79" in talk
    assert "error: alert gpu_lost: GPU 0 (NVIDIA H200): it does not answer: the GPU is lost" in talk


def test_webhook(machine):
    hook = Hook()
    machine.script({"gpus": [FULL | {"name": "NVIDIA \x1b\"H200"}]})
    done = machine.run("--webhook", hook.url, "--alerts", "memory_nearly_full", "--every", "100ms", "--count", "3")
    assert done.returncode == 0
    assert len(hook.bodies) == 1
    path, kind, body = hook.bodies[0]
    alert = json.loads(body)
    assert path == "/alerts?room=7" and kind == "application/json"
    assert alert["schema"] == "tracefire.monitor.alert/1" and alert["alert"] == "memory_nearly_full"
    assert alert["state"] == "firing" and alert["gpu_name"] == "NVIDIA \\x1b\"H200"


def test_webhook_that_refuses(machine):
    hook = Hook(answer=500)
    machine.script({"gpus": [FULL]})
    done = machine.run("--webhook", hook.url, "--alerts", "memory_nearly_full", "--every", "100ms", "--count", "3")
    assert done.returncode == 0 and "could not be sent to the webhook at 127.0.0.1: status 500" in done.stderr


def test_webhook_that_is_not_there(machine):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    machine.script({"gpus": [FULL]})
    done = machine.run("--webhook", f"http://127.0.0.1:{port}/", "--every", "100ms", "--count", "3")
    assert done.returncode == 0 and "no connection" in done.stderr


@pytest.mark.deep
def test_webhook_that_says_nothing_holds_nobody_up(machine):
    hook = Hook(answer=None)
    machine.script({"gpus": [FULL]})
    process = machine.start("--webhook", hook.url, "--json", "--every", "100ms", "--duration", "6s")
    begin = time.monotonic()
    lines = 0
    for _ in process.stdout:
        lines += 1
    process.wait(60)
    assert lines > 10 and time.monotonic() - begin < 60
    assert "no answer within 3 s" in process.stderr.read()


def test_shared_gpu_is_told(machine):
    machine.script({"gpus": [GPU | {"processes": [{"pid": os.getpid(), "memory": 1}, {"pid": 1, "memory": 1}]}]})
    done = machine.run("--alerts", "shared_gpu", "--every", "100ms", "--count", "3")
    assert "alert shared_gpu: GPU 0" in done.stderr
