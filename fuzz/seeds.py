"""Writes the seeds of the corpora, `corpus/TARGET/NAME`: one small valid file of every kind that a reader takes.

Python's standard library only; the same bytes every time.
"""

import gzip
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).parent / "corpus"


def write(target, **files):
    folder = ROOT / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def idx(shape, values):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(values)


def npy(kind, shape, data, fortran=False, version=1):
    header = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def npz(method, **arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = method
            archive.writestr(entry, content)
    return file.getvalue()


def tensors(metadata=None, **arrays):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (kind, shape, content) in arrays.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def png(width, height, kind, depth, rows):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(range(12))) if kind == 3 else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + palette + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpeg(components):
    """Eight by eight pixels of one colour: every coefficient is zero, every code one bit."""

    def segment(mark, content):
        return b"\xff" + bytes([mark]) + struct.pack(">H", len(content) + 2) + content

    frame = struct.pack(">BHHB", 8, 8, 8, components)
    frame += b"".join(bytes([i, 0x11, 0]) for i in range(1, components + 1))
    codes = bytes([1] + [0] * 15 + [0])
    scan = bytes([components]) + b"".join(bytes([i, 0]) for i in range(1, components + 1)) + bytes([0, 63, 0])
    bits = "00" * components
    bits = bits.ljust(8, "1")
    return (
        b"\xff\xd8"
        + segment(0xDB, bytes([0] + [1] * 64))
        + segment(0xC0, frame)
        + segment(0xC4, bytes([0]) + codes)
        + segment(0xC4, bytes([0x10]) + codes)
        + segment(0xDA, scan)
        + bytes([int(bits, 2)])
        + b"\xff\xd9"
    )


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def longs(*values):
    return struct.pack(f"<{len(values)}q", *values)


images = idx([2, 3, 4], range(24))
write("idx", images=images, labels=idx([3], [1, 0, 2]), colour=idx([1, 3, 2, 2], range(12)), packed=gzip.compress(images, mtime=0))

write(
    "npy",
    f4=npy("<f4", "(2, 3)", floats(1, 2, 3, 4, 5, 6)),
    fortran=npy("<f4", "(2, 3)", floats(1, 4, 2, 5, 3, 6), fortran=True),
    big=npy(">i4", "(2, 2)", struct.pack(">4i", 1, 2, 3, 4)),
    f2=npy("<f2", "(2,)", struct.pack("<2e", 0.5, 1)),
    f8=npy("<f8", "(1, 2)", struct.pack("<2d", 0.5, 1)),
    labels=npy("<i8", "(3,)", longs(0, 1, 2)),
    images=npy("|u1", "(1, 5, 2, 3)", bytes(range(30))),
    version2=npy("|b1", "(2, 1)", b"\0\1", version=2),
)

x, y = npy("<f4", "(2, 3)", floats(1, 2, 3, 4, 5, 6)), npy("|u1", "(2,)", b"\0\1")
write(
    "npz",
    stored=npz(zipfile.ZIP_STORED, x_train=x, y_train=y),
    deflated=npz(zipfile.ZIP_DEFLATED, images=npy("|u1", "(2, 4, 4)", bytes(32)), labels=y),
    one=npz(zipfile.ZIP_DEFLATED, arr_0=x),
)

# The first byte chooses the options; see src/data.rs.
write(
    "csv",
    named=b"\0a,label,b\n1,0,2\n3,1,4\n",
    words=b'\0x, class\r\n1,"tall, dark"\r\n2, a\r\n',
    numbered=b"\x02" + b"5,0,255\n0,1,2",
    unlabelled=b"\x01a,b\n1,2\n-3e4,.5\n",
    missing=b"\x02,1,2\n1,NA,3\n",
    packed=b"\0" + gzip.compress(b"label,a\n0,1\n1,2\n", mtime=0),
)

write(
    "safetensors",
    features=tensors({"classes": "cat,dog"}, features=("F32", [2, 3], floats(1, 2, 3, 4, 5, 6)), labels=("I64", [2], longs(1, 0))),
    images=tensors(None, images=("U8", [1, 1, 2, 2], bytes(4))),
    halves=tensors(None, x=("BF16", [1, 2], b"\x80\x3f\0\0"), y=("U8", [1], b"\0")),
)

write(
    "picture",
    grey=png(3, 2, 0, 8, b"\0\1\2\3\0\4\5\6"),
    colour=png(2, 2, 2, 8, b"\0" + bytes(range(6)) + b"\1" + bytes(range(6))),
    palette=png(2, 1, 3, 8, b"\0\1\2"),
    alpha=png(1, 1, 6, 8, b"\0\1\2\3\4"),
    deep=png(1, 1, 2, 16, b"\0" + bytes(range(6))),
    bits=png(9, 2, 0, 1, b"\0\xaa\x80\2\x55\0"),
    jpeg_grey=jpeg(1),
    jpeg_colour=jpeg(3),
)

write("annotations", two=b"val_0.JPEG\tn02\t0\t0\t7\t7\nval_1.JPEG\tn01\t0\t0\t7\t7\n", path=b"../a.JPEG\tn01\n")
write("cifar", labels=bytes([0, 9, 3]))



def posterior(kind, form, count, rank=0, columns=0):
    """The posterior of a parameter in a model for devices; see circulant-edge/src/model.rs."""
    def fill(data):
        return data + bytes(-len(data) % 4)

    def values(n, groups):
        if form == 2:
            return floats(*[0.01] * groups) + fill(bytes(range(7, 7 + n)))
        return floats(*[0.5] * n) if form == 0 else fill(b"\0\x38" * n)

    blocks = (count + 31) // 32
    data = struct.pack("<BBBBIHH", kind, form, 5, rank, count, 3, 0) + values(count, columns or blocks)
    if kind == 2:
        data += values(count * rank, (count * rank + 31) // 32)
    if kind > 0:
        scale = floats(0.1) if form == 2 else b""
        data += scale + (fill(bytes(count)) if form == 2 else values(count, 0))
    return data


def device(image, outputs, layers, count, flags=0, task=0, extra=b"", names=b"\1a\1b"):
    channels, height, width = image
    body = struct.pack("<IIIIHHIIffI", channels, height, width, outputs, count, flags, 2, 0, 0.0, 0.0, len(names))
    body += extra + layers + names
    return b"CIRC" + struct.pack("<HHII", 1, task, len(body) + 16, zlib.crc32(body)) + body


def read_out(inputs, outputs, form):
    head = struct.pack("<BBHII", 3, 0, 0, inputs, outputs)
    return head + posterior(1, form, inputs * outputs, columns=outputs) + posterior(1, form, outputs)


signal = struct.pack("<BBHII", 1, 1, 0, 4, 3)
whole = 2**64 - 1
image = struct.pack("<BBHIIIIQ", 2, 2, 0, 1, 1, 2, 2, whole)
blocks = struct.pack("<BBHIIIIQ", 2, 1, 0, 8, 2, 1, 4, whole)
write(
    "device",
    f32=device((1, 1, 4), 2, signal + posterior(2, 0, 4, 2) + posterior(1, 0, 1) + read_out(4, 2, 0), 2),
    f16=device((1, 2, 2), 2, image + posterior(1, 1, 4) + posterior(0, 1, 1) + read_out(4, 2, 1), 2, flags=1),
    int8=device((1, 1, 4), 2, signal + posterior(2, 2, 4, 2) + posterior(1, 2, 1) + read_out(4, 2, 2), 2, flags=2, extra=floats(1)),
    sums=device((8, 1, 4), 2, blocks + posterior(2, 2, 64, 1) + posterior(1, 2, 8) + read_out(8, 2, 2), 2, flags=1),
    values=device((1, 1, 3), 1, read_out(3, 1, 0), 1, task=1, extra=floats(1, 2, 3), names=b""),
)

# What the program of 0.1.0 wrote.
fixtures = ROOT.parent.parent / "crates/circulant-cli/tests/fixtures/0.1.0"
write("run_config", old=(fixtures / "run/config.toml").read_bytes())
write("run_facts", old=(fixtures / "run/run.json").read_bytes())
write("checkpoint", old=(fixtures / "run/checkpoint.safetensors").read_bytes())
head = (fixtures / "head/head.json").read_bytes(), (fixtures / "head/head.safetensors").read_bytes()
write("classifier", old=b"\0".join(head))
