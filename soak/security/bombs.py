"""Small files that unpack to more than there is memory."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np

from fathometer.data import open_data
from fathometer.data.inputs import Inputs
from fathometer.errors import FathometerError
from soak.security.trial import Point

IMAGES = Inputs("image", (3, 8, 8))


def bombs_are_refused(folder: Path) -> Point:
    """An .npz, an .npy and a PNG that say that they are enormous."""
    point = Point("files that unpack to more than the memory are refused")
    head = io.BytesIO()
    shape = (2**40, 3, 8, 8)
    np.lib.format.write_array_header_1_0(head, {"descr": "|u1", "fortran_order": False, "shape": shape})
    (folder / "a.npy").write_bytes(head.getvalue() + bytes(100))
    with zipfile.ZipFile(folder / "honest.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", head.getvalue() + bytes(2**20))
    content = (folder / "honest.npz").read_bytes()
    size = struct.pack("<L", len(head.getvalue()) + 2**20)
    (folder / "boasting.npz").write_bytes(content.replace(size, struct.pack("<L", 2**32 - 2)))
    (folder / "photos").mkdir()
    (folder / "photos" / "a.png").write_bytes(_png(60_000))
    for name in ("a.npy", "honest.npz", "boasting.npz", "photos"):
        try:
            batches = sum(1 for _ in open_data(folder / name, IMAGES))
        except FathometerError:
            point.note(True, "")
        else:
            point.note(False, f"{name} gave {batches} batches")
    return point


def _png(side: int) -> bytes:
    """A black image of that side: rows of nothing, which compress well; the data are not all there."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">L", len(content)) + kind + content + struct.pack(">L", zlib.crc32(kind + content))
        )

    header = struct.pack(">LLBBBBB", side, side, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(10**6))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
