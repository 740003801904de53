# SPDX-License-Identifier: Apache-2.0
"""How scripts/make_dist packs and what it refuses; needs no tarball."""
import io
import os
import shutil
import tarfile

import pytest

from conftest import BUILD, find_tarball, load_make_dist

make_dist = load_make_dist()


def make_tree(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"text of {name}\n")
    (folder / names[0]).chmod(0o700)
    return folder


def test_the_same_files_are_the_same_bytes(tmp_path):
    names = ["bin/b", "bin/a", "share/x/y", "A"]
    one = make_tree(tmp_path / "one" / "tools", names)
    two = make_tree(tmp_path / "two" / "tools", [names[0], *reversed(names[1:])])
    for path in two.rglob("*"):
        os.utime(path, (5, 5))
    (two / "A").chmod(0o666)
    packed = make_dist.pack(one, 1700000000)
    assert packed == make_dist.pack(two, 1700000000)
    assert packed != make_dist.pack(two, 1700000001)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        entries = {e.name: e for e in archive.getmembers()}
    assert list(entries) == sorted(entries)
    assert {(e.uid, e.gid, e.uname, e.gname, e.mtime) for e in entries.values()} == {(0, 0, "", "", 1700000000)}
    assert entries["tools/bin/b"].mode == 0o755 and entries["tools/A"].mode == 0o644


def test_what_needs_more_than_the_c_library_is_refused():
    program = BUILD / "bin" / "tracefire-monitor"  # made by this machine's compiler
    if not program.exists():
        pytest.skip(f"{program} is not built: run make")
    problems = list(make_dist.elf_problems(program))
    assert any(p.startswith("links to libstdc++.so.6") for p in problems), problems
    assert any(p.startswith("needs glibc 2.") for p in problems), problems


@pytest.mark.deep
@pytest.mark.slow
def test_a_second_build_elsewhere_is_the_same_bytes(tmp_path):
    first, why_not = find_tarball()
    if first is None:
        pytest.skip(why_not)
    shutil.copytree(make_dist.ROOT / "build" / "dist" / "zig", tmp_path / "work" / "zig", symlinks=True)
    make_dist.run(make_dist.ROOT / "scripts" / "make_dist", "--work", tmp_path / "work", "--out", tmp_path / "out",
                  env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "cache"),
                       "ZIG_LOCAL_CACHE_DIR": str(tmp_path / "cache")})  # fmt: skip
    assert (tmp_path / "out" / first.name).read_bytes() == first.read_bytes()
