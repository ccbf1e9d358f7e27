"""Media as files of a local folder, or of a volume that several machines mount.

A file is whole or absent: it is written beside, synced, renamed, and its folder is synced. What a
killed writer leaves behind ends in ``.draft`` and is read by nobody.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Connection, Engine

from publisher.editorial.media.refusal import MediaLost, MediaUnreachable
from publisher.editorial.media.storage import CHUNK_BYTES, Measured, Place, object_name
from publisher.words import _


class InFolder:
    """A folder that is there already: one that is missing may be a volume nobody mounted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> Place:
        """See ``Storage``."""
        return "folder"

    @property
    def name(self) -> str:
        """The path."""
        return str(self._folder)

    def upload(self, sha256: str, file: BinaryIO, size: int) -> None:
        """Write the file over whatever is there, which may be damaged. See ``Storage``."""
        path = self._folder / object_name(sha256)
        measured = Measured(file)
        with self._explained():
            self._require_folder()
            with suppress(FileExistsError):
                path.parent.mkdir(mode=0o700)
                _sync(self._folder)
            draft = path.with_name(f"{sha256}.{secrets.token_hex(8)}.draft")
            try:
                _write(draft, measured)
                measured.require(sha256, size)
                draft.replace(path)
            except BaseException:
                with suppress(OSError):
                    draft.unlink()
                raise
            _sync(path.parent)

    def write(self, conn: Connection, sha256: str, file: BinaryIO, size: int) -> None:
        """Do nothing more."""

    def read(self, engine: Engine, sha256: str, size: int) -> Iterator[bytes]:  # noqa: ARG002 - as the port has it
        """Yield the file in chunks. See ``Storage``."""
        with self._explained():
            try:
                file = (self._folder / object_name(sha256)).open("rb")
            except FileNotFoundError:
                self._require_folder()
                raise MediaLost(sha256, self.name) from None
        with file:
            while True:
                with self._explained():
                    chunk = file.read(CHUNK_BYTES)
                if not chunk:
                    return
                yield chunk

    def probe(self) -> None:
        """Write a draft and take it away. See ``Storage``."""
        draft = self._folder / f"probe.{secrets.token_hex(8)}.draft"
        with self._explained():
            self._require_folder()
            try:
                _write(draft, [b"probe"])
            finally:
                with suppress(FileNotFoundError):
                    draft.unlink()

    def _require_folder(self) -> None:
        if not self._folder.is_dir():
            message = _(
                "The media folder {name} is not there. Mount the volume, or make the folder."
            ).format(name=self.name)
            raise MediaUnreachable(message)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (MediaUnreachable, MediaLost):
            raise
        except OSError as error:
            message = _(
                "The media folder {name} cannot be read or written: {reason}. Give this process"
                " access to it, make room, or mend the volume."
            ).format(name=self.name, reason=error.strerror)
            raise MediaUnreachable(message) from error

    def __repr__(self) -> str:
        return f"<media in {self.name}>"


def _write(path: Path, chunks: Measured | list[bytes]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
