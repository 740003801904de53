# SPDX-License-Identifier: Apache-2.0
"""Timing that the programs share. None of them knows that it is being traced."""
import argparse
import json
import sys
import time


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5.0, help="how long steps are made")
    parser.add_argument("--steps", type=int, default=0, help="exactly so many steps instead")
    parser.add_argument("--warmup", type=int, default=5)
    return parser.parse_args()


def measure(step, finish, args, **facts):
    """Runs step(i) again and again, finish() waits for the device; prints one JSON line."""
    for i in range(args.warmup):
        step(i)
    finish()
    begun, done = time.perf_counter(), 0
    while done < args.steps if args.steps else time.perf_counter() - begun < args.seconds:
        step(done)
        done += 1
    finish()
    seconds = time.perf_counter() - begun
    print(json.dumps({"program": sys.argv[0].rsplit("/", 1)[-1], "steps": done,
                      "seconds": round(seconds, 4), "steps_per_s": round(done / seconds, 4), **facts}),
          flush=True)
