"""Pictures and videos: what they are by their bytes, and the bytes back as they were."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from sqlalchemy import text

from publisher.db.connect import Database
from publisher.editorial.media import Library, MediaRefused, files, kinds
from tests.editorial.media.conftest import Stand

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
    assert kinds.sniff(head) == kind


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "media-empty", "a.png is empty."),
        (b"%PDF-1.7", "media-type-unknown", "a.png is a PDF document."),
        (b"\x00\x00\x00\x18ftypheic", "media-type-unknown", "an HEIC picture."),
        (b"\x00\x00\x00\x18ftypavif", "media-type-unknown", "an AVIF picture."),
        (b"\x00\x00\x00\x18ftypM4A ", "media-type-unknown", "sound without a picture."),
        (b"version https://git-lfs.github", "media-type-unknown", "a Git LFS pointer"),
        (b"PK\x03\x04", "media-type-unknown", "a ZIP archive."),
        (b"<svg xmlns", "media-type-unknown", "an SVG or XML document."),
        (b"\xef\xbb\xbf <!DOCTYPE html>", "media-type-unknown", "a web page."),
        (b"hello", "media-type-unknown", "neither a picture nor a video."),
    ],
)
def test_what_is_no_picture(tmp_path: Path, data: bytes, code: str, words: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(data)
    with pytest.raises(MediaRefused) as caught:
        files.inspect(path)
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
            files.inspect(tmp_path / name)


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "IMAGE_BYTES", 10)
    path = tmp_path / "a.jpg"
    path.write_bytes(PNG)
    with pytest.raises(MediaRefused, match=r"a.jpg is 0.0 MB; at most 0 MB are kept."):
        files.inspect(path)
    path.write_bytes(b"\x00\x00\x00\x18ftypisom")
    assert files.inspect(path).kind == "video"


def test_what_was_looked_at_is_what_is_kept(
    shelf: Library, app_database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    found = files.inspect(path)
    assert (found.type, found.size) == ("image/png", len(PNG))
    assert found.sha256 == hashlib.sha256(PNG).hexdigest()
    files.upload(shelf, found)
    with app_database.engine.begin() as conn:
        files.record(conn, shelf, found, who="importer")
    assert b"".join(shelf.read(found.sha256)) == PNG


@pytest.mark.parametrize("change", [b"more", None], ids=["longer", "gone"])
def test_a_file_that_changed_is_not_stored(
    app_database: Database, tmp_path: Path, stand: Stand, change: bytes | None
) -> None:
    library = Library(app_database.engine, stand.storage)
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    found = files.inspect(path)
    path.unlink() if change is None else path.write_bytes(PNG + change)

    def keep() -> None:
        files.upload(library, found)
        with app_database.engine.begin() as conn:
            files.record(conn, library, found, who="importer")

    with pytest.raises(MediaRefused):
        keep()
    with app_database.engine.begin() as conn:
        assert conn.scalar(text("SELECT count(*) FROM media")) == 0
    assert [*stand.names()] == []


def test_types_by_name() -> None:
    assert kinds.type_of_name("/a/B.JPEG") == "image/jpeg"
    assert kinds.type_of_name("/a/b.mov") == "video/quicktime"
    assert kinds.type_of_name("/a/jpeg") is None
