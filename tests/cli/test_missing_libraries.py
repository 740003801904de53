# SPDX-License-Identifier: Apache-2.0
"""A driver and a GPU, but a CUDA library that is not there, or there in another major version only:
what a user of pip or Conda meets who did not install them. Work goes on, on the processor."""

import json
import pathlib

import pytest

PIP13 = {"libnvrtc.so": "nvidia-cuda-nvrtc", "libcublasLt.so": "nvidia-cublas"}
PIP12 = {"libnvrtc.so": "nvidia-cuda-nvrtc-cu12", "libcublasLt.so": "nvidia-cublas-cu12"}


def cure(package):
    return f"Install it with `python3 -m pip install {package}`, or set TRACEFIRE_CUDA_PATH to the folder that holds it."


def again(package):
    command = f"python3 -m pip install --force-reinstall {package}"
    return f"Install it again with `{command}`, or set TRACEFIRE_CUDA_PATH to the folder that holds another one."


def check_devices(cli, env, parts):
    """`devices` and `version` give reason and cure in one line; returns that line."""
    document = cli.json("devices", env=env)
    assert [d["device"] for d in document["devices"]] == ["/CPU:0"]
    why = document["why_no_gpu"]
    assert "\n" not in why
    for part in parts:
        assert part in why
    assert f"No GPU is used: {why}\n" in cli("devices", env=env).out
    assert why in cli("version", env=env).out
    return why


def check_demo(cli, env, why, tmp_path):
    """The demo says the same, trains to the end on the processor and succeeds."""
    done = cli("demo", "--json", tmp_path / "demo.json", env=env)
    assert done.err.splitlines()[:2] == ["devices: /CPU:0", "no GPU is used: " + why]
    assert done.out.endswith("verdict on-cpu\n")
    result = json.loads((tmp_path / "demo.json").read_text())
    assert result["verdict"] == "on-cpu" and result["why_no_gpu"] == why and result["accuracy"] >= 0.95
    assert {row["device"] for row in result["proof"]["rows"]} == {"/CPU:0"}


@pytest.fixture
def folder(emulated):
    return pathlib.Path(emulated["TRACEFIRE_CUDA_PATH"])


def test_the_libraries_alone_decide(cli, no_toolkit, emulated):
    """What the other tests take away is all that is needed: with it the GPU is there."""
    assert [d["device"] for d in cli.json("devices", env=emulated)["devices"]] == ["/GPU:0", "/CPU:0"]


@pytest.mark.parametrize("stem", PIP13)
def test_a_library_is_missing(cli, no_toolkit, emulated, folder, tmp_path, stem):
    (folder / f"{stem}.13").unlink()
    parts = (f"{stem}.13 was not found. Searched: {folder}, ", cure(PIP13[stem]))
    check_demo(cli, emulated, check_devices(cli, emulated, parts), tmp_path)


def test_no_library_is_there(cli, no_toolkit, emulated, folder, tmp_path):
    for stem in PIP13:
        (folder / f"{stem}.13").unlink()
    parts = ("libnvrtc.so.13 was not found. Searched: ", cure(PIP13["libnvrtc.so"]))
    check_demo(cli, emulated, check_devices(cli, emulated, parts), tmp_path)


@pytest.mark.parametrize("stem", PIP13)
def test_a_library_is_of_the_wrong_major(cli, no_toolkit, emulated, folder, tmp_path, stem):
    (folder / f"{stem}.13").rename(folder / f"{stem}.11")
    parts = (f"found only another major version: {folder} ({stem}.11). Expected {stem}.13. ", cure(PIP13[stem]))
    check_demo(cli, emulated, check_devices(cli, emulated, parts), tmp_path)


def test_the_libraries_are_newer_than_the_driver(cli, no_toolkit, emulated, folder, tmp_path):
    env = {**emulated, "TF_EMU_CUDA": "12020"}
    parts = (
        f"found only another major version: {folder} (libnvrtc.so.13). Expected libnvrtc.so.12. ",
        cure(PIP12["libnvrtc.so"]),
    )
    check_demo(cli, env, check_devices(cli, env, parts), tmp_path)


@pytest.mark.parametrize("stem", PIP13)
def test_a_library_lacks_functions(cli, no_toolkit, emulated, folder, tmp_path, stem):
    """Another library under its name: a broken package, or a stub."""
    file = folder / f"{stem}.13"
    file.unlink()
    file.symlink_to(pathlib.Path(emulated["TF_EMU_READY_KERNELS"]))
    parts = (f"{file} has no function ", "the file is damaged or is not NVIDIA's. " + again(PIP13[stem]))
    check_demo(cli, emulated, check_devices(cli, emulated, parts), tmp_path)


def test_a_library_is_of_another_major_than_its_name_says(cli, no_toolkit, emulated, folder, tmp_path):
    env = {**emulated, "TF_EMU_CUBLASLT_VERSION": "120904"}
    file = folder / "libcublasLt.so.13"
    parts = (f"{file} is version 12.9.4. Expected 13.x, as its name says. " + again("nvidia-cublas"),)
    check_demo(cli, env, check_devices(cli, env, parts), tmp_path)


@pytest.mark.parametrize(
    "setting, code, text",
    [
        ({"TF_EMU_CUBLASLT_CREATE": "1"}, "TF-E0213", "cublasLtCreate gave CUBLAS_STATUS_NOT_INITIALIZED"),
        ({"TF_EMU_CUBLASLT_CREATE": "3"}, "TF-E0203", "cuBLASLt found no memory to start on /GPU:0"),
        ({"TF_EMU_NO_BUILTINS": "1"}, "TF-E0213", "failed to open libnvrtc-builtins.so.13.0"),
    ],
)
def test_a_library_that_was_found_does_not_start(cli, no_toolkit, emulated_kernels, setting, code, text):
    """Only work on the GPU tells. The error names the library and what to do, and blames no shapes."""
    done = cli("demo", "--epochs", "1", status=1, env={**emulated_kernels, **setting})
    assert code in done.err and text in done.err
    assert "report" not in done.err
    if code == "TF-E0213":
        package = "nvidia-cuda-nvrtc" if "TF_EMU_NO_BUILTINS" in setting else "nvidia-cublas"
        assert again(package) in done.err
