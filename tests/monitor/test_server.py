# SPDX-License-Identifier: Apache-2.0
"""The web server: what it serves, to whom, and how it treats clients that misbehave."""
import http.client
import json
import re
import select
import socket
import time

import pytest

GPU = {"name": "NVIDIA H200", "uuid": "GPU-aa", "values": {"busy": 87}}


class Server:
    def __init__(self, machine, *arguments):
        self.process = machine.start("--serve", "127.0.0.1:0", "--every", "200ms", *arguments)
        line = self.process.stderr.readline()
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", line)[1])
        deadline = time.monotonic() + 60
        while self.get("/healthz")[0] != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def get(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text, dict(answer.getheaders())

    def raw(self, data, timeout=60):
        """Sends bytes as they are; returns everything that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            s.sendall(data)
            out = b""
            while chunk := s.recv(65536):
                out += chunk
            return out


def some_are_open(sockets):
    """Whether the server has not closed every one of them."""
    poll = select.poll()
    for s in sockets:
        poll.register(s, select.POLLIN | select.POLLHUP)
    return len(poll.poll(0)) < len(sockets)


@pytest.fixture
def server(machine):
    machine.script({"gpus": [GPU | {"processes": [{"pid": 4194200, "memory": 1}]}]})
    s = Server(machine)
    yield s
    s.process.terminate()
    assert s.process.wait(60) in (0, 143)


def test_page_and_data(server):
    status, text, headers = server.get("/")
    assert status == 200 and "Tracefire" in text and headers["Content-Type"] == "text/html; charset=utf-8"
    # Nothing from elsewhere, and no code or style in the page itself.
    assert not re.search(r"https?://|//[a-z]|<style|<script>|\bon\w+=|style=", text)
    for path, kind in (("/monitor.js", "text/javascript"), ("/charts.js", "text/javascript"), ("/monitor.css", "text/css")):
        status, text, headers = server.get(path)
        assert status == 200 and headers["Content-Type"].startswith(kind) and len(text) > 1000
        assert "http://www.w3.org/2000/svg" in text or "http" not in text.replace("http://www.w3.org", "")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    snapshot = json.loads(server.get("/api/v1/snapshot")[1])
    assert snapshot["schema"] == "tracefire.monitor/1" and snapshot["gpus"][0]["gpu_utilization_percent"] == 87
    assert "command" not in snapshot["gpus"][0]["processes"][0]
    history = json.loads(server.get("/api/v1/history?seconds=60&points=3")[1])
    assert history["schema"] == "tracefire.monitor.history/1" and len(history["gpus"][0]["unix_ms"]) <= 3
    assert history["gpus"][0]["gpu_utilization_percent"][-1] == 87
    assert "tracefire_gpu_utilization_ratio" in server.get("/metrics")[1]
    assert server.get("/nothing")[0] == 404 and server.get("/../etc/passwd")[0] == 404


def test_security_headers(server):
    for path in ("/", "/monitor.js", "/api/v1/snapshot", "/metrics", "/nothing"):
        headers = server.get(path)[2]
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("host, status", [
    ("localhost", 200), ("localhost:9422", 200), ("127.0.0.1", 200), ("127.0.0.1:80", 200), ("[::1]:9422", 200), ("192.0.2.7", 200),
    ("evil.example", 403), ("localhost.evil.example", 403), ("127.0.0.1.evil.example", 403), ("evil.example:9422", 403), ("", 403),
    ("localhost:80x", 403), ("[::1", 403), ("[evil]", 403), ("127.1.example", 403)])
def test_host_header(server, host, status):
    assert server.get("/api/v1/snapshot", Host=host)[0] == status


def test_further_host(machine):
    s = Server(machine, "--allow-host", "gpu.example")
    assert s.get("/metrics", Host="GPU.example:80")[0] == 200 and s.get("/metrics", Host="x.example")[0] == 403
    s.process.terminate()
    s.process.wait(60)


def test_only_reading(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        status, _, headers = server.get("/api/v1/snapshot", method=method)
        assert status == 405 and headers["Allow"] == "GET, HEAD"
    status, text, headers = server.get("/metrics", method="HEAD")
    assert status == 200 and text == "" and int(headers["Content-Length"]) > 1000
    assert server.get("/metrics", body="x" * 10)[0] == 413


@pytest.mark.parametrize("request_text", [
    b"hello\r\n\r\n", b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", b"GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nbroken\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n"])
def test_broken_requests(server, request_text):
    assert server.raw(request_text).startswith(b"HTTP/1.1 400 ")
    assert server.get("/healthz")[0] == 200


def test_oversized_request(server):
    assert server.raw(b"GET /" + b"a" * 20000).startswith(b"HTTP/1.1 431 ")
    assert server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20000 + b"\r\n\r\n").startswith(b"HTTP/1.1 431 ")
    assert server.get("/healthz")[0] == 200


def test_slow_and_silent_clients_hold_nobody_up(server):
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]  # more than are kept
    for i, s in enumerate(idle[60:]):
        try:
            s.sendall(b"GET / HTTP/1.1\r\n")  # never ends
        except OSError:
            pass  # dropped already, to make room
    greedy = socket.socket()  # asks, and takes nothing of the answer
    greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    greedy.connect(("127.0.0.1", server.port))
    greedy.sendall(b"GET /api/v1/history?seconds=100000&points=3600 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    # Answered while they are there, not when they have been dropped.
    assert server.get("/api/v1/snapshot")[0] == 200 and some_are_open(idle)
    for _ in range(20):
        assert server.get("/api/v1/snapshot")[0] == 200
    for s in [*idle, greedy]:
        s.close()


@pytest.mark.deep
def test_silent_client_is_dropped(server):
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        s.sendall(b"GET / HTTP/1.1\r\n")
        assert s.recv(10) == b"" and 5 < time.monotonic() - begin


def test_address_that_is_taken(machine, server):
    done = machine.run("--serve", f"127.0.0.1:{server.port}")
    assert done.returncode == 2 and "cannot listen on 127.0.0.1" in done.stderr and "in use" in done.stderr
    assert machine.run("--serve", "gpu.example:80").returncode == 2


def test_serving_to_the_network_is_said(machine):
    machine.script({"gpus": [GPU]})
    done = machine.run("--serve", "0.0.0.0:0", "--count", "1")
    assert done.returncode == 0 and "warning: the server at 0.0.0.0 can be reached from other machines" in done.stderr
    for own in ("127.0.0.1:0", "127.0.0.7:0", "localhost:0"):
        assert "warning" not in machine.run("--serve", own, "--count", "1").stderr, own


@pytest.mark.slow
def test_many_connections_leave_room_for_others(server):
    """Five hundred that say half a request, and one that asks in between: it is answered, and their number is bounded."""
    crowd = []
    try:
        for i in range(500):
            s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            s.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
            crowd.append(s)
            if i % 100 == 99:
                assert server.get("/healthz")[0] == 200 and some_are_open(crowd)
        status = open(f"/proc/{server.process.pid}/status").read()
        assert int(re.search(r"FDSize:\s+(\d+)", status)[1]) <= 256
    finally:
        for s in crowd:
            s.close()


def test_nothing_ends_a_process(server):
    """No path and no method does anything to a process."""
    import os
    import subprocess
    child = subprocess.Popen(["sleep", "600"])
    try:
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            for path in ("/kill", "/api/v1/kill", f"/api/v1/processes/{child.pid}", f"/api/v1/snapshot?kill={child.pid}&signal=9"):
                status = server.get(path, method=method)[0]
                assert status == (405 if method != "GET" else 200 if path.startswith("/api/v1/snapshot") else 404)
        assert child.poll() is None and os.path.exists(f"/proc/{child.pid}")
    finally:
        child.kill()
        child.wait()


def test_loopback_is_what_is_bound_to(machine):
    process = machine.start("--serve", "0")
    line = process.stderr.readline()
    process.terminate()
    process.wait(60)
    assert "http://127.0.0.1:" in line


@pytest.mark.deep
def test_serving_while_the_driver_hangs(machine):
    machine.script({"gpus": [GPU]})
    s = Server(machine)
    machine.script({"gpus": [GPU], "hang": {"function": "nvmlDeviceGetPowerUsage", "seconds": 300}})
    deadline = time.monotonic() + 60
    while (json.loads(s.get("/api/v1/snapshot")[1])["read_pending_seconds"] or 0) <= 3:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert re.search(r"tracefire_monitor_read_pending_seconds ([\d.]+)", s.get("/metrics")[1])
    begin = time.monotonic()
    s.process.terminate()
    assert s.process.wait(60) == 143 and time.monotonic() - begin < 60
