# SPDX-License-Identifier: Apache-2.0
"""Links what the system's compiler makes for an older glibc than the system's.

Objects are those of every build; only links differ. Zig carries the symbols of each glibc: its stubs
are what the linker sees, so that every symbol gets the version that the older library has.
cmake/older_glibc.cpp gives what that one lacks. A symbol that neither has is an error of the link.
"""
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# In one glibc these are files, in a newer one all are parts of libc.so.6.
LIBRARIES = ("c", "m", "dl", "pthread", "rt")
LOADER = "ld"  # holds __tls_get_addr


def _run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, text=True, stdout=subprocess.PIPE,
                          **options).stdout.strip()


def make_stubs(folder, zig, version):
    """Puts Zig's stubs of that glibc into `folder`, under the names that a linker looks for."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "empty.c"
    source.write_text("int tracefire_empty;\n")
    cache = folder / "zig"
    _run(zig / "zig", "cc", "-target", f"x86_64-linux-gnu.{version}", "-shared", "-fPIC", source, "-o",
         folder / "empty.so", *(f"-l{name}" for name in LIBRARIES),
         env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)})
    stubs = next(cache.rglob("libc.so.6")).parent
    for name in (*LIBRARIES, LOADER):
        stub = next(stubs.glob(f"lib{name}.so.*"))
        link = folder / f"lib{name}.so"
        link.unlink(missing_ok=True)
        link.symlink_to(stub)
    return folder


def options(folder, zig, version, compiler):
    """CMake's definitions for such a build; makes what they name in `folder`."""
    make_stubs(folder, zig, version)
    shim, start = folder / "older_glibc.o", folder / "start.o"
    for out, more in ((shim, []), (start, ["-DTRACEFIRE_START"])):
        _run(compiler, "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", *more, "-c",
             ROOT / "cmake" / "older_glibc.cpp", "-o", out)
    where = lambda name: _run(compiler, f"-print-file-name={name}")
    # atexit and the like are linked into each product, as ever.
    static = where("libc_nonshared.a")
    libraries = [shim, where("libstdc++.a"), f"-L{folder}", "-lm", "-ldl", "-lpthread", "-lrt", "-lc", "-lld", static,
                 "-lgcc_s", "-lgcc"]
    # GNU ld leaves an empty entry among a program's jumps where --wrap is used, which older loaders refuse.
    linker = next((name for name in ("lld", "gold") if shutil.which(f"ld.{name}")), None)
    if linker is None:
        raise SystemExit("older_glibc: neither ld.lld nor ld.gold was found; apt-get install lld")
    first = f"-fuse-ld={linker} -nodefaultlibs -L{folder}"
    # The system's libgcc_s wants the system's glibc; the one of the machine that runs it is another.
    return {
        "CMAKE_SHARED_LINKER_FLAGS": f"{first} -Wl,-z,defs -Wl,--allow-shlib-undefined",
        "CMAKE_MODULE_LINKER_FLAGS": first,  # Python's symbols come from the program that loads it
        "CMAKE_EXE_LINKER_FLAGS": f"{first} -Wl,--allow-shlib-undefined -Wl,--wrap=__libc_start_main {start}",
        "CMAKE_CXX_STANDARD_LIBRARIES": " ".join(map(str, libraries)),
        # Nothing is linked to try the compiler out, which would be done without these libraries.
        "CMAKE_TRY_COMPILE_TARGET_TYPE": "STATIC_LIBRARY",
        "CMAKE_LIBRARY_ARCHITECTURE": _run(compiler, "-print-multiarch"),  # which such a trial does not tell
    }


def problems(file, version):
    """Symbols of an ELF file that a machine with that glibc does not have."""
    text = _run("nm", "-D", "--undefined-only", file)
    number = lambda v: tuple(map(int, v.split(".")))
    for kind, symbol in re.findall(r" ([Uw]) (\S+)$", text, re.M):
        name, _, needed = symbol.partition("@")
        found = re.fullmatch(r"@?GLIBC_(2[.\d]+)", needed)
        if found and number(found[1]) > number(version):
            yield f"{file.name} needs {symbol}"
        ours = name.startswith(("Py", "_Py")) or "9tracefire" in name  # of the program, and of libtracefire.so
        if not needed and kind == "U" and not ours and file.name.startswith("_core"):
            yield f"{file.name} needs {name}, of no known version"
