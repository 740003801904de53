# SPDX-License-Identifier: Apache-2.0
"""Reads TensorBoard's event files from their formats alone: TFRecord frames, protobuf's wire
format, PNG. Nothing of the library is used."""

import pathlib
import struct
import zlib


def crc32c(data):
    """CRC-32C bit by bit (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """The records of a TFRecord file, checksums checked."""
    data, at, out = pathlib.Path(path).read_bytes(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert len(body) == length
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(body)
        out.append(body)
        at += 16 + length
    return out


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def message(data):
    """{field: [values]}: numbers, or bytes for what is 32 bits, 64 bits or delimited."""
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                assert kind == 2, kind
                length, at = varint(data, at)
            value = data[at : at + length]
            assert len(value) == length
            at += length
        fields.setdefault(key >> 3, []).append(value)
    return fields


def tensor(data):
    """(dtype, shape, elements)."""
    fields = message(data)
    dims = message(fields.get(2, [b""])[0]).get(2, [])
    shape = [message(dim).get(1, [0])[0] for dim in dims]
    dtype = fields[1][0]
    if dtype == 7:
        return "string", shape, fields.get(8, [])
    code = {1: "f", 2: "d"}[dtype]
    content = fields.get(4, [b""])[0]
    return code, shape, list(struct.unpack(f"<{len(content) // struct.calcsize(code)}{code}", content))


def events(path):
    """Events as dictionaries: step, wall, and version, graph or (tag, plugin, class, tensor)."""
    out = []
    for record in records(path):
        fields = message(record)
        event = {"wall": struct.unpack("<d", fields[1][0])[0], "step": fields.get(2, [0])[0]}
        if 3 in fields:
            event["version"] = fields[3][0].decode()
        if 4 in fields:
            event["graph"] = [
                {"name": n[1][0].decode(), "op": n[2][0].decode(), "inputs": [i.decode() for i in n.get(3, [])]}
                for n in map(message, message(fields[4][0])[1])
            ]
        for value in message(fields[5][0]).get(1, []) if 5 in fields else []:
            value = message(value)
            metadata = message(value[9][0])
            plugin = message(metadata[1][0])
            event |= {
                "tag": value[1][0].decode(),
                "plugin": plugin[1][0].decode(),
                "content": plugin.get(2, [b""])[0],
                "class": metadata.get(4, [0])[0],
                "description": metadata.get(3, [b""])[0].decode(),
                "tensor": tensor(value[8][0]),
            }
        out.append(event)
    return out


def png(data):
    """(width, height, rows of pixel bytes) of an 8-bit PNG without filters."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + body)
        chunks[kind] = chunks.get(kind, b"") + body
        at += 12 + length
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert depth == 8
    size = width * {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    raw = zlib.decompress(chunks[b"IDAT"])
    assert len(raw) == height * (size + 1)
    rows = [raw[i * (size + 1) : (i + 1) * (size + 1)] for i in range(height)]
    assert all(row[0] == 0 for row in rows)
    return width, height, [row[1:] for row in rows]
