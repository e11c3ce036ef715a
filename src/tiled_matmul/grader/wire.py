"""The messages between the grader and a worker: a length, a JSON header, then raw bytes.

Nothing else crosses: no pickles, no code objects. The reader sets the largest size that it accepts,
so it never trusts a length that it receives.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

LENGTH = struct.Struct(">Q")
MAX_HEADER = 256 << 10


class BadMessage(ValueError):
    """The bytes that came are not a message as `encode` makes it."""


def encode(header: dict, blobs: Sequence[bytes] = ()) -> bytes:
    """Return a message: `header` with the sizes of `blobs` added, then the blobs."""
    text = json.dumps({**header, "sizes": [len(blob) for blob in blobs]}).encode()
    return b"".join([LENGTH.pack(len(text)), text, *blobs])


def marked(value: Any) -> Any:
    """Return a plain value as JSON can hold it, where tuples are told from lists."""
    if isinstance(value, dict):
        return {"dict": {key: marked(part) for key, part in value.items()}}
    if isinstance(value, list | tuple):
        parts = [marked(part) for part in value]
        return {"tuple": parts} if isinstance(value, tuple) else parts
    return value


def restored(value: Any) -> Any:
    """Return the value that `marked` was given."""
    if isinstance(value, list):
        return [restored(part) for part in value]
    if isinstance(value, dict):
        ((kind, parts),) = value.items()
        if kind == "dict":
            return {key: restored(part) for key, part in parts.items()}
        return tuple(restored(part) for part in parts)
    return value


def send(out: BinaryIO, header: dict, blobs: Sequence[bytes] = ()) -> None:
    """Write a whole message to an unbuffered stream. For the worker's side."""
    data = memoryview(encode(header, blobs))
    while data:
        data = data[out.write(data) :]


class Reader:
    """Collects bytes as they arrive and returns a message once it is complete."""

    def __init__(self, max_bytes: int, max_header: int = MAX_HEADER) -> None:
        self.max_bytes, self.max_header = max_bytes, max_header
        self.buffer = bytearray()
        self.header: dict | None = None
        self.start = self.end = 0

    def feed(self, data: bytes) -> tuple[dict, list[bytes]] | None:
        """Return (header, blobs) once the message is complete; raise BadMessage once it is bad."""
        self.buffer += data
        if self.header is None and len(self.buffer) >= LENGTH.size:
            (length,) = LENGTH.unpack(self.buffer[: LENGTH.size])
            if not 2 <= length <= self.max_header:
                raise BadMessage(f"a header of {length} bytes; at most {self.max_header}")
            self.start = LENGTH.size + length
            if len(self.buffer) >= self.start:
                self.header = _header(bytes(self.buffer[LENGTH.size : self.start]))
                self.sizes = _sizes(self.header)
                if sum(self.sizes) > self.max_bytes:
                    raise BadMessage(f"{sum(self.sizes)} bytes of data; at most {self.max_bytes}")
                self.end = self.start + sum(self.sizes)
        if self.header is None or len(self.buffer) < self.end:
            return None
        if len(self.buffer) > self.end:
            raise BadMessage(f"{len(self.buffer) - self.end} bytes after the message")
        blobs, at = [], self.start
        for size in self.sizes:
            blobs.append(bytes(self.buffer[at : at + size]))
            at += size
        return self.header, blobs


def _header(text: bytes) -> dict:
    try:
        header = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"the header is not JSON: {type(error).__name__}") from None
    if not isinstance(header, dict):
        raise BadMessage(f"the header is a {type(header).__name__}")
    return header


def _sizes(header: dict) -> list[int]:
    sizes = header.pop("sizes", None)
    if not isinstance(sizes, list) or len(sizes) > 64:
        raise BadMessage("the header has no sizes")
    if not all(type(size) is int and 0 <= size < 1 << 40 for size in sizes):
        raise BadMessage("a size is not a number of bytes")
    return sizes


def read_from(read: Callable[[int], bytes], max_bytes: int) -> tuple[dict, list[bytes]] | None:
    """Return one message of a blocking stream; None at its end. For the worker's side."""
    first = read(LENGTH.size)
    if len(first) < LENGTH.size:
        return None
    reader = Reader(max_bytes)
    reader.feed(first)
    (length,) = LENGTH.unpack(first)
    message: Any = reader.feed(read(length))
    if message is None:
        message = reader.feed(read(reader.end - reader.start))
    return message
