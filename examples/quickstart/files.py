"""magika: which type a file is, from the bytes at its beginning and its end.

The model sees 1024 bytes from the first block, leading white space skipped, padded behind, and 1024
from the last block, trailing white space skipped, padded in front. A label whose score is below its
threshold becomes `txt` or `unknown`.
"""

import dataclasses
import io
import struct
import wave
import zlib

import numpy

SIDE, BLOCK, PADDING = 1024, 4096, 256


@dataclasses.dataclass(frozen=True)
class Sample:
    name: str
    content: bytes
    expected: str


def features(content):
    """int32 [1, 2048]."""
    first = numpy.frombuffer(content[:BLOCK].lstrip()[:SIDE], dtype=numpy.uint8)
    last = numpy.frombuffer(content[-BLOCK:].rstrip()[-SIDE:], dtype=numpy.uint8)
    result = numpy.full(2 * SIDE, PADDING, dtype=numpy.int32)
    result[: len(first)] = first
    result[2 * SIDE - len(last) :] = last
    return result[numpy.newaxis, :]


def name_type(infer, labels, content):
    """(label, score) of a file's content."""
    scores = infer("magika", {"bytes": features(content)})["target_label"][0]
    best = int(scores.argmax())
    return labels[best], float(scores[best])


def png(width, height):
    """A small colour gradient as a PNG file."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(
        b"\0" + bytes(value for x in range(width) for value in (x * 4 % 256, y * 4 % 256, 128))
        for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9))
            + chunk(b"IEND", b""))


def tone():
    """Half a second of a tone as a WAV file."""
    time = numpy.arange(8000) / 16000
    samples = (numpy.sin(2 * numpy.pi * 440 * time) * 12000).astype("<i2")
    target = io.BytesIO()
    with wave.open(target, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16000)
        sound.writeframes(samples.tobytes())
    return target.getvalue()


def samples(folder):
    """The files to name: text from samples/, the binary ones made here. No extension tells the type."""
    text = {"fibonacci": "python", "order": "json", "backup": "shell", "notes": "markdown", "page": "html"}
    found = [Sample(name, (folder / f"{name}.sample").read_bytes(), kind) for name, kind in text.items()]
    return found + [Sample("gradient", png(64, 64), "png"), Sample("tone", tone(), "wav")]
