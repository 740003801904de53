# SPDX-License-Identifier: Apache-2.0
"""The web page in a real browser, where one is installed."""
import os
import re
import shutil
import subprocess

import pytest
from test_server import Server

GPU = {"name": "NVIDIA H200", "uuid": "GPU-aa", "values": {"busy": 87}}


def browse(server, tmp_path, width=1300):
    """The page's markup after its scripts have run for some seconds, and what the console said."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here (apt-get install chromium)")
    done = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", f"--window-size={width},1200",
         f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--v=0", "--dump-dom",
         f"http://127.0.0.1:{server.port}/"], capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, console


def text_of(markup):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup))


@pytest.mark.slow
def test_page_shows_what_the_gpus_do(machine, tmp_path):
    machine.script({"gpus": [
        GPU | {"wave": 5, "processes": [{"pid": os.getpid(), "memory": 3 << 30, "sm": 83}]},
        {"name": "<img src=x onerror=alert(1)>", "uuid": "GPU-bb", "fail": {"nvmlDeviceGetUtilizationRates": 3},
         "mig": [{"gi": 1, "ci": 0, "name": "NVIDIA H200 MIG 1g.18gb", "uuid": "MIG-1"}]},
        {"name": "NVIDIA H200", "uuid": "GPU-cc", "fail": {"nvmlDeviceGetMemoryInfo": 15}}]})
    server = Server(machine, "--alerts", "all")
    try:
        markup, console = browse(server, tmp_path)
    finally:
        server.process.terminate()
        server.process.wait(10)
    assert console == []  # no error of a script, nothing that the policy refused
    text = text_of(markup)
    assert "live ·" in text and "driver 580.159.04 · CUDA 13.0" in text
    assert "healthy" in text and "✗ lost" in text and "94.3 / 140.4" in text.replace("94.2", "94.3")
    assert "MIG 1g.18gb" in text and str(os.getpid()) in text and "3.0 GiB" in text
    assert "gpu lost" in text and "it does not answer: the GPU is lost" in text
    assert "<img" not in markup and "&lt;img src=x" in markup
    assert markup.count('class="first"') >= 5  # lines of charts
    assert not re.search(r'\bd="[^"]*NaN', markup)


@pytest.mark.slow
def test_page_without_nvml(machine, tmp_path):
    machine.script({"init": 18})
    server = Server(machine)
    try:
        markup, console = browse(server, tmp_path)
    finally:
        server.process.terminate()
        server.process.wait(10)
    assert console == [] and "Driver/library version mismatch" in text_of(markup)
    assert "No process uses a GPU." in text_of(markup)


@pytest.mark.slow
def test_page_of_many_gpus_shows_all_of_them_small(machine, tmp_path):
    machine.script({"copies": 64, "gpus": [GPU | {"processes": [{"pid": os.getpid(), "memory": 3 << 30}]}]})
    server = Server(machine)
    try:
        markup, console = browse(server, tmp_path)
    finally:
        server.process.terminate()
        server.process.wait(10)
    assert console == []
    assert 'class="gpus many"' in markup and markup.count('class="more"') == 64
    # Charts are drawn where a card is opened: before that, there is none but those of the first look.
    assert "GPU 63" in text_of(markup).replace("\u2002", " ") and markup.count("healthy") >= 64
