"""The bytes of a request body: exact, of known length, and the same on every attempt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from publisher.transport.request import BadRequest, FilePart, Request


@dataclass(frozen=True, slots=True)
class Body:
    """A body: its media type, its length in bytes, and pieces of bytes and files, in order."""

    type: str | None
    length: int
    pieces: tuple[bytes | FilePart, ...]

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, bytes):
                yield piece
            else:
                yield from piece.open()


def encode(request: Request) -> Body:
    """Build the body. Raises ``BadRequest`` for text that is no text, or a file of another size."""
    try:
        if request.content is not None:
            return _file(request, request.content)
        if request.json is not None:
            return _json(request)
        if request.files:
            return _multipart(request.form or (), request.files)
        if request.form is not None:
            return _whole("application/x-www-form-urlencoded", urlencode(request.form).encode())
    except UnicodeEncodeError as error:
        message = "the text holds half of a surrogate pair, which is no character"
        raise BadRequest(message) from error
    return Body(type=None, length=0, pieces=())


def _whole(type_: str, content: bytes) -> Body:
    return Body(type=type_, length=len(content), pieces=(content,))


def _file(request: Request, part: FilePart) -> Body:
    """One file as it is; read first, so that what is missing or cut is known before connecting."""
    if request.json is not None or request.form is not None or request.files:
        message = "a request whose body is a file has no other body"
        raise BadRequest(message)
    if any(c in part.type for c in "\r\n"):
        message = "a file's media type holds a line break"
        raise BadRequest(message)
    size = sum(len(chunk) for chunk in part.open())
    if size != part.size:
        message = f"the file {part.filename} has {size} bytes, not {part.size}"
        raise BadRequest(message)
    return Body(part.type, size, (part,))


def _json(request: Request) -> Body:
    if request.form is not None or request.files:
        message = "a request has either JSON or form fields and files, not both"
        raise BadRequest(message)
    text = json.dumps(request.json, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _whole("application/json", text.encode())


def _multipart(form: Sequence[tuple[str, str]], files: Sequence[FilePart]) -> Body:
    """Follow RFC 7578, with names escaped as the WHATWG form submission algorithm has it."""
    boundary = _boundary(form, files)
    pieces: list[bytes | FilePart] = []
    for name, value in form:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_escaped(name)}"\r\n\r\n'
        pieces.append(f"{head}{value}\r\n".encode())
    for part in files:
        if any(c in part.type for c in "\r\n"):
            message = "a file's media type holds a line break"
            raise BadRequest(message)
        head = (
            f"--{boundary}\r\n"
            f'Content-Disposition: form-data; name="{_escaped(part.field)}"; '
            f'filename="{_escaped(part.filename)}"\r\n'
            f"Content-Type: {part.type}\r\n\r\n"
        )
        pieces += [head.encode(), part, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    length = sum(len(piece) if isinstance(piece, bytes) else piece.size for piece in pieces)
    return Body(f"multipart/form-data; boundary={boundary}", length, tuple(pieces))


def _boundary(form: Sequence[tuple[str, str]], files: Sequence[FilePart]) -> str:
    """Hash everything the body holds, so that no content can contain its own boundary.

    A boundary made from names and sizes alone could be foreseen by whoever made the file, who
    could then put fields of his own into our request. Reading the files first also shows, before
    anything is connected, that they are there and have the size we are about to declare.
    """
    digest = hashlib.sha256()
    for name, value in form:
        _add(digest, name.encode())
        _add(digest, value.encode())
    for part in files:
        for text in (part.field, part.filename, part.type):
            _add(digest, text.encode())
        size = 0
        for chunk in part.open():
            size += len(chunk)
            digest.update(chunk)
        if size != part.size:
            message = f"the file {part.filename} has {size} bytes, not {part.size}"
            raise BadRequest(message)
        digest.update(size.to_bytes(8, "big"))
    return digest.hexdigest()[:40]


def _add(digest: hashlib._Hash, value: bytes) -> None:
    digest.update(len(value).to_bytes(8, "big"))
    digest.update(value)


def _escaped(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
