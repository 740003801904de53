# SPDX-License-Identifier: Apache-2.0
"""Makes a file of ready kernels (src/backends/cuda/kernels/*.cu) one that a host compiler takes.

    host_kernels.py --compiler CXX --include SRC --prelude device_prelude.h --out OUT.cpp KERNELS.cu

The emulator's prelude comes first, then the file itself, then for each kernel the two functions by
which the emulated driver runs it and learns the sizes of its arguments.
"""
import argparse
import pathlib
import re
import subprocess

MARK = "TF_EMU_KERNEL_MARK"
KERNEL = re.compile(MARK + r"\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(")

TRAMPOLINES = """\
extern "C" __attribute__((visibility("default"))) int tf_emu_run_{name}(
    const unsigned* g, const unsigned* b, unsigned s, void** p) {{
  tf_emu::use_fibers = {fibers};
  return tf_emu::launch(&{name}, g, b, s, p);
}}
extern "C" __attribute__((visibility("default"))) void tf_emu_sizes_{name}(int* s) {{
  tf_emu::parameter_sizes(&{name}, s);
}}
"""


def kernels_of(compiler, include, source):
    """Names of the kernels, whatever macro made them."""
    command = [compiler, "-x", "c++", "-std=c++17", "-E", "-P", f"-I{include}", "-DTF_EMULATOR=1",
               f"-D__global__={MARK}", str(source)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(dict.fromkeys(KERNEL.findall(text)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--prelude", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("source", type=pathlib.Path)
    options = parser.parse_args()
    names = kernels_of(options.compiler, options.include, options.source)
    if not names:
        raise SystemExit(f"host_kernels: {options.source} defines no kernel")
    text = options.source.read_text()
    fibers = "true" if "__sync" in text or "__shfl" in text or "warp_" in text else "false"
    # Files of kernels use equal names for different things; each keeps its own.
    lines = [f'#include "{options.prelude}"', "namespace {", f'#include "{options.source}"', "}", ""]
    lines += [TRAMPOLINES.format(name=name, fibers=fibers) for name in names]
    options.out.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
