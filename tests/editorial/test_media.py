"""Pictures and videos: what they are by their bytes, and the bytes back as they were."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from sqlalchemy import text

from publisher.db.connect import Database
from publisher.editorial import media
from publisher.editorial.media import CHUNK_BYTES, MediaRefused, PostgresMediaStore

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (PNG, "image/png"),
        (b"GIF89a" + bytes(9), "image/gif"),
        (b"GIF87a" + bytes(9), "image/gif"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\x00\x00\x00WAVEfmt ", None),
        (b"\x00\x00\x00\x18ftypisom", "video/mp4"),
        (b"\x00\x00\x00\x18ftypmp42", "video/mp4"),
        (b"\x00\x00\x00\x14ftypqt  ", "video/quicktime"),
        (b"\x00\x00\x00\x08wide\x00\x00", "video/quicktime"),
        (b"\x00\x00\x00\x18ftypheic", None),
        (b"\x00\x00\x00\x18ftypavif", None),
        (b"\x00\x00\x00\x18ftypM4A ", None),
        (b"<svg>", None),
        (b"", None),
    ],
)
def test_what_first_bytes_show(head: bytes, kind: str | None) -> None:
    assert media.sniff(head) == kind


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "media-empty", "a.png is empty."),
        (b"%PDF-1.7", "media-type-unknown", "a.png is a PDF document."),
        (b"\x00\x00\x00\x18ftypheic", "media-type-unknown", "an HEIC picture."),
        (b"\x00\x00\x00\x18ftypavif", "media-type-unknown", "an AVIF picture."),
        (b"\x00\x00\x00\x18ftypM4A ", "media-type-unknown", "sound without a picture."),
        (b"version https://git-lfs.github", "media-type-unknown", "a Git LFS pointer"),
        (b"hello", "media-type-unknown", "neither a picture nor a video."),
    ],
)
def test_what_is_no_picture(tmp_path: Path, data: bytes, code: str, words: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(data)
    with pytest.raises(MediaRefused) as caught:
        media.inspect(path)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in [
        ("none", "There is no file"),
        (".", "is not a file"),
        ("pipe", "is not a file"),
        ("x" * 300, "cannot be read: File name too long"),
        ("a\0b", "cannot be read: embedded null"),
    ]:
        with pytest.raises(MediaRefused, match=words):
            media.inspect(tmp_path / name)


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "IMAGE_BYTES", 10)
    path = tmp_path / "a.jpg"
    path.write_bytes(PNG)
    with pytest.raises(MediaRefused, match=r"a.jpg is 0.0 MB; at most 0 MB are kept."):
        media.inspect(path)
    path.write_bytes(b"\x00\x00\x00\x18ftypisom")
    assert media.inspect(path).kind == "video"


@pytest.mark.parametrize("size", [len(PNG), CHUNK_BYTES, CHUNK_BYTES * 9 + 1])
def test_bytes_come_back_as_they_were(
    app_database: Database, database: Database, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "a.png"
    data = (PNG + os.urandom(size))[:size]
    path.write_bytes(data)
    found = media.inspect(path)
    assert (found.type, found.size) == ("image/png", size)
    assert found.sha256 == hashlib.sha256(data).hexdigest()
    for _ in range(2):
        with app_database.engine.begin() as conn:
            assert media.store(conn, path, found.type) == found.sha256
    chunks = [*PostgresMediaStore(database.engine).read(found.sha256)]
    assert b"".join(chunks) == data
    assert {len(chunk) for chunk in chunks[:-1]} <= {CHUNK_BYTES}
    with app_database.engine.connect() as conn:
        row = conn.execute(text("SELECT type, size FROM media")).one()
    assert tuple(row) == ("image/png", size)


def test_what_is_not_there(database: Database) -> None:
    store = PostgresMediaStore(database.engine)
    for sha256 in ("0" * 64, "no hex"):
        with pytest.raises(KeyError):
            store.read(sha256)


def test_a_reader_holds_no_connection_between_chunks(
    app_database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG + bytes(CHUNK_BYTES))
    with app_database.engine.begin() as conn:
        sha256 = media.store(conn, path, "image/png")
    chunks = PostgresMediaStore(app_database.engine).read(sha256)
    next(chunks)
    assert "Connections in pool: 1 " in app_database.engine.pool.status()
    assert "Current Checked out connections: 0" in app_database.engine.pool.status()


def test_a_file_that_changed_is_not_stored(app_database: Database, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    found = media.inspect(path)
    path.write_bytes(PNG + b"more")
    with app_database.engine.begin() as conn:
        with pytest.raises(MediaRefused, match="changed while it was being read"):
            media.store(conn, path, found.type, sha256=found.sha256)
        assert conn.scalar(text("SELECT count(*) FROM media")) == 0


def test_types_by_name() -> None:
    assert media.type_of_name("/a/B.JPEG") == "image/jpeg"
    assert media.type_of_name("/a/b.mov") == "video/quicktime"
    assert media.type_of_name("/a/jpeg") is None
