#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every program of this folder under `tracefire-prove` on a machine with an NVIDIA GPU.

    python3 bench/prove_programs/run_all.py --bin build/bin --out DIR [--seconds 4] [--only NAME,…]

--bin holds tracefire-prove; libtracefire_inject.so lies there or in ../lib. Needs PyTorch and JAX.
Goes on after failures. Writes into DIR: results.json (how each program ended, its speed, the
overhead), table.txt (the same for people), log.txt (what they printed), machine.txt
and records.tar.xz: the raw records of every program, which the tests analyse again.
"""
import argparse
import json
import os
import pathlib
import shutil
import stat
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# Program, arguments. The names are those of the recorded folders.
PROGRAMS = [
    ("torch_healthy", []), ("jax_healthy", []), ("torch_cpu_only", []), ("jax_cpu_only", []),
    ("torch_input_bound", []), ("jax_input_bound", []), ("torch_launch_bound", []),
    ("torch_copy_bound", []), ("torch_sync_bound", []), ("torch_cpu_fallback", []),
    ("torch_graph", []), ("torch_ranks", ["--steps", "150"]),
]
OVERHEAD = ["torch_healthy", "jax_healthy", "torch_launch_bound"]
TIMEOUT = 60


class Runner:
    def __init__(self, args):
        self.args, self.log, self.results = args, [], {"programs": {}, "overhead": {}}
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="prove-"))
        # A copy that belongs to this user and that others cannot write, as the library demands.
        source = pathlib.Path(args.bin).resolve()
        for name, folder in (("tracefire-prove", "bin"), ("libtracefire_inject.so", "lib")):
            found = next((d / name for d in (source, source.parent / "lib") if (d / name).exists()), None)
            if found is None:
                sys.exit(f"run_all: {name} is neither in {source} nor in {source.parent / 'lib'}")
            (self.work / folder).mkdir(mode=0o755)
            shutil.copy(found, self.work / folder / name)
            (self.work / folder / name).chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
        self.prove = str(self.work / "bin" / "tracefire-prove")
        self.raw = self.work / "records"
        self.raw.mkdir()
        self.begun = time.monotonic()
        # Later runs of the JAX programs need not compile again.
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(self.work / "jax"))

    def late(self, name):
        if time.monotonic() - self.begun < self.args.budget:
            return False
        self.say(f"{name:22} left out: {self.args.budget:.0f} s are over")
        return True

    def say(self, text):
        print(text, flush=True)
        self.log.append(text)

    def execute(self, command):
        """(status, seconds, the program's JSON line or None, all output)."""
        begun = time.perf_counter()
        try:
            done = subprocess.run(command, cwd=HERE, timeout=TIMEOUT, text=True, errors="replace",
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            status, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            output = late.stdout or ""
            output = output.decode(errors="replace") if isinstance(output, bytes) else output
            status = "timeout"
        rows = []
        for line in output.splitlines():
            if line.startswith('{"program"'):
                try:
                    rows.append(json.loads(line))
                except ValueError:
                    pass
        return status, time.perf_counter() - begun, rows, output

    def record(self, name, arguments, limit):
        if self.late(name):
            return
        out = self.raw / name
        python = [sys.executable, "-u", str(HERE / f"{name}.py")]
        status, seconds, rows, output = self.execute(
            [self.prove, "--out", str(out), "--limit", str(limit), "--beat", "100", "--", *python, *arguments])
        found = {}
        if (out / "report.json").exists():
            report = json.loads((out / "report.json").read_text())
            found = {k: report[k] for k in ("verdict", "busy_share", "busy_share_whole_run", "causes", "classes", "kernel_count",
                                            "kernel_ns", "memory_peak", "nvml_memory_peak", "notes")}
            found["advice"] = [a["finding"] for a in report["advice"]]
        # Reports are made again from the records.
        for name_of_report in ("report.txt", "report.json", "report.html", "trace.json"):
            (out / name_of_report).unlink(missing_ok=True)
        shutil.rmtree(out / "tensorboard", ignore_errors=True)
        files = {p.name: p.stat().st_size for p in sorted(out.glob("*"))} if out.exists() else {}
        self.results["programs"][name] = {"status": status, "wall_s": round(seconds, 2), "rows": rows, "files": files,
                                          "report": found}
        busy = found.get("busy_share")
        causes = ", ".join(f"{c['cause']} {100 * c['share']:.0f} %" for c in found.get("causes", [])[:3])
        self.say(f"{name:20} status {status} {seconds:5.1f} s {rows[0]['steps_per_s'] if rows else 'no steps'} steps/s  "
                 f"{found.get('verdict', 'no report')}, busy {'-' if busy is None else f'{100 * busy:.1f} %'}; {causes}  "
                 f"[{sum(files.values())} bytes, {len(files)} files]")
        self.log.append(output[-6000:])

    def overhead(self, name):
        """Steps per second without and with, in turns, so that a drift of the machine hits both."""
        if self.late(f"overhead {name}"):
            return
        speeds = {"without": [], "with": []}
        for turn in range(self.args.turns):
            for kind in ("without", "with") if turn % 2 == 0 else ("with", "without"):
                python = [sys.executable, "-u", str(HERE / f"{name}.py"), "--seconds", str(self.args.seconds)]
                command = python if kind == "without" else [self.prove, "--", *python]
                status, _, rows, output = self.execute(command)
                if rows and status == 0:
                    speeds[kind].append(rows[0]["steps_per_s"])
                else:
                    self.log.append(f"overhead {name} {kind}: status {status}\n{output[-3000:]}")
        if all(speeds.values()):
            slower = 1 - statistics.median(speeds["with"]) / statistics.median(speeds["without"])
            # Where the same runs differ among themselves by more, the overhead is not known: more --turns are needed.
            spread = max((max(v) - min(v)) / statistics.median(v) for v in speeds.values())
            cost = 1e6 / statistics.median(speeds["with"]) - 1e6 / statistics.median(speeds["without"])
            self.results["overhead"][name] = {**speeds, "overhead": round(slower, 5), "spread": round(spread, 5),
                                              "us_per_step": round(cost, 3)}
            self.say(f"overhead {name:20} {100 * slower:6.2f} %, {cost:.1f} us a step, equal runs differ by {100 * spread:.1f} %"
                     f"   without {speeds['without']}  with {speeds['with']}")
        else:
            self.say(f"overhead {name}: not measured {speeds}")

    def reference(self):
        if self.late("reference"):
            return
        status, _, rows, output = self.execute([sys.executable, "-u", str(HERE / "torch_reference.py")])
        if rows:
            self.results["reference"] = rows[0]
        self.say(f"PyTorch's own profiler: status {status}, {len(rows[0]['kernels_us']) if rows else 0} kernels")
        self.log.append(output[-2000:] if not rows else "")

    def machine(self, out):
        lines = []
        for command in (["nvidia-smi", "-L"], ["nvidia-smi"], ["uname", "-a"], ["ldd", self.prove],
                        [sys.executable, "-c", "import torch; print('torch', torch.__version__, torch.version.cuda)"],
                        [sys.executable, "-c", "import jax; print('jax', jax.__version__)"],
                        ["sh", "-c", "find /usr /opt /lib -name 'libcupti.so*' 2>/dev/null"]):
            try:
                done = subprocess.run(command, text=True, errors="replace", timeout=60,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                lines.append(f"$ {' '.join(command)}\n{done.stdout}")
            except (OSError, subprocess.TimeoutExpired) as problem:
                lines.append(f"$ {' '.join(command)}\n{problem}")
        (out / "machine.txt").write_text("\n".join(lines))

    def pack(self, out):
        with tarfile.open(out / "records.tar.xz", "w:xz", preset=9) as archive:
            archive.add(self.raw, arcname="records")
        (out / "results.json").write_text(json.dumps(self.results, indent=1) + "\n")
        (out / "log.txt").write_text("\n".join(self.log)[-2_000_000:])
        shutil.rmtree(self.work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--budget", type=float, default=500, help="seconds after which nothing new is begun")
    parser.add_argument("--limit", type=int, default=1_000_000, help="bytes of single events a process")
    parser.add_argument("--measure", default="", help="names of programs whose overhead alone is measured")
    parser.add_argument("--only", default="", help="names of programs, separated by commas; no overhead then")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    runner = Runner(args)
    only = [n for n in args.only.split(",") if n]
    measure = [n for n in args.measure.split(",") if n]
    try:
        for name in measure:
            runner.overhead(name)
        for name, arguments in PROGRAMS:
            if not measure and (not only or name in only):
                runner.record(name, ["--seconds", str(args.seconds), *arguments], args.limit)
        if not only and not measure:
            # The same work as the reference counts, with every event kept.
            shutil.copy(HERE / "torch_healthy.py", HERE / "torch_exact.py")
            try:
                runner.record("torch_exact", ["--steps", "20"], 8_000_000)
            finally:
                (HERE / "torch_exact.py").unlink()
            runner.reference()
            for name in OVERHEAD:
                runner.overhead(name)
        runner.machine(out)
    finally:
        table = "\n".join(line for line in runner.log if len(line) < 400 and "\n" not in line)
        (out / "table.txt").write_text(table + "\n")
        runner.pack(out)
    print("\n" + table)
    print("files:", ", ".join(f"{p.name} {p.stat().st_size}" for p in sorted(out.iterdir())))


if __name__ == "__main__":
    main()
