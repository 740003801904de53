# SPDX-License-Identifier: Apache-2.0
"""The command `tracefire` of a wheel: becomes the program that lies in the package. It is no Python
program; this only finds it, and imports nothing, so that it also works where the package does not."""

import os
import sys


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(here, "tracefire", "bin", "tracefire")
    os.execv(program, ["tracefire", *sys.argv[1:]])
