#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the compressed files beside it from table.csv, with Python's zlib.

    python3 tests/io/data/make_samples.py

stored: blocks without compression; fixed: the fixed codes; dynamic: codes of its own and copies; members:
two files one after the other, padded with zeros; header: every optional field of a gzip header; zeros: 1 MiB
of one byte.
"""
import pathlib
import random
import zlib

HERE = pathlib.Path(__file__).parent
TRAILER = ("little", 4)


def table():
    numbers = random.Random(1)
    rows = []
    for i in range(60):
        row = [str(i), f"{numbers.uniform(-5, 5):.6g}", "0.5", f"{numbers.uniform(0, 1e-3):.3e}"]
        rows.append(",".join(row))
    return "\n".join(["index,value,half,small", *rows]) + "\n"


def member(text, level=9, strategy=zlib.Z_DEFAULT_STRATEGY, flags=0, fields=b""):
    press = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    body = press.compress(text) + press.flush()
    head = bytes([0x1F, 0x8B, 8, flags, 0, 0, 0, 0, 0, 255]) + fields
    if flags & 2:
        head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    return head + body + zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(4, "little")


def main():
    text = table().encode()
    half = text.index(b"\n", len(text) // 2) + 1
    fields = (5).to_bytes(2, "little") + b"extra" + b"table.csv\0" + b"a comment\0"
    files = {
        "table.csv": text,
        "stored.csv.gz": member(text, level=0),
        "fixed.csv.gz": member(text, strategy=zlib.Z_FIXED),
        "dynamic.csv.gz": member(text),
        "members.csv.gz": member(text[:half]) + member(text[half:]) + bytes(16),
        "header.csv.gz": member(text, flags=4 | 8 | 16 | 2, fields=fields),
        "zeros.gz": member(bytes(1 << 20)),
    }
    for name, content in files.items():
        (HERE / name).write_bytes(content)
        print(name, len(content))


if __name__ == "__main__":
    main()
