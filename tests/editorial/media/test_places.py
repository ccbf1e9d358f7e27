"""What one kind of storage alone must do, and which one a setting means."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from publisher.buckets.address import BucketAddress
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.editorial.media import (
    Library,
    MediaExtraMissing,
    MediaStorageUnusable,
    MediaUnreachable,
    Piece,
    storage,
)
from publisher.editorial.media.address import FolderAt, parse
from publisher.editorial.media.storage import CHUNK_BYTES, object_name
from tests.editorial.media.conftest import Stand
from tests.witness.object_store import BUCKET, ObjectStore

DATA = b"a picture"
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/srv/media", FolderAt(Path("/srv/media"))),
        (" /srv/media/ ", FolderAt(Path("/srv/media"))),
        ("file:///srv/a%20b", FolderAt(Path("/srv/a b"))),
        ("~/media", FolderAt(Path.home() / "media")),
        ("s3://the-bucket", BucketAddress("the-bucket", "", None, None)),
        ("s3://the-bucket/a/b/", BucketAddress("the-bucket", "a/b", None, None)),
        (
            "s3://the-bucket/a?endpoint=https://store.example:9000&region=eu-1",
            BucketAddress("the-bucket", "a", "https://store.example:9000", "eu-1"),
        ),
    ],
)
def test_each_form(text: str, place: object) -> None:
    assert parse(text) == place


@pytest.mark.parametrize(
    "text",
    ["", " ", "media", "./media", "a\nb", "file:relative", "file://host/srv", "file:///srv?x=1",
     "http://store.example/media", "s3:/the-bucket", "s3://B/key", "s3://the-bucket/a//b",
     "s3://the-bucket/a b", "s3://the-bucket/%0a", "s3://the-bucket/a#b", "s3://[/key",
     "s3://canary:canary@the-bucket/a", "s3://the-bucket/a?secret=canary",
     "s3://the-bucket/a?region=a&region=b", "s3://the-bucket/a?endpoint=https://u:canary@x",
     "s3://the-bucket/" + "a" * 600, "configmap://a/b"],
)  # fmt: skip
def test_what_cannot_be_meant(text: str) -> None:
    with pytest.raises(MediaStorageUnusable) as caught:
        parse(text)
    said = str(caught.value)
    assert said.startswith("PUBLISHER_MEDIA ")
    assert "s3://bucket/prefix" in said
    assert "canary" not in said
    assert caught.value.exit_code == 2


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "botocore"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("publisher.editorial.media.bucket", "publisher.buckets.client"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(MediaExtraMissing, match=r"publisher\[s3\]"):
        storage(Settings(media="s3://the-bucket/media"))


def test_a_file_is_its_user_s_alone_and_lies_under_its_hash(
    folder_stand: Stand, tmp_path: Path
) -> None:
    folder_stand.storage.upload(SHA256, io.BytesIO(DATA), len(DATA))
    path = tmp_path / "volume" / SHA256[:2] / SHA256
    assert path.read_bytes() == DATA
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


_WRITER = """
import hashlib, io, os, sys
from publisher.config import Settings
from publisher.editorial.media import storage

class Slow(io.BytesIO):
    def read(self, size=-1):
        if self.tell() >= int(sys.argv[3]):
            print("reached", flush=True)
            sys.stdin.read()
        return super().read(size)

data = bytes(3 << 20)
storage(Settings(media=sys.argv[1])).upload(sys.argv[2], Slow(data), len(data))
"""


@pytest.mark.parametrize("after", [0, 1 << 20, 3 << 20])
def test_a_writer_that_is_killed_leaves_nothing_by_that_name(
    folder_stand: Stand, app_database: Database, tmp_path: Path, after: int
) -> None:
    data = bytes(3 * CHUNK_BYTES)
    sha256 = hashlib.sha256(data).hexdigest()
    volume = tmp_path / "volume"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(volume), sha256, str(after)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "reached\n"
        writer.send_signal(signal.SIGKILL)
    assert not (volume / object_name(sha256)).exists()
    assert all(name.endswith(".draft") for name in folder_stand.names())
    library = Library(app_database.engine, folder_stand.storage)
    library.add(Piece(sha256, "video/mp4", len(data), sha256), io.BytesIO(data), who="editor")
    assert b"".join(library.read(sha256)) == data


def test_a_file_is_synced_before_it_has_its_name(
    folder_stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "volume" / object_name(SHA256)
    synced: list[tuple[str, bool]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    folder_stand.storage.upload(SHA256, io.BytesIO(DATA), len(DATA))
    (volume, _), (draft, too_early), (folder, named) = synced
    assert volume == str(tmp_path / "volume")
    assert draft.endswith(".draft")
    assert not too_early
    assert (folder, named) == (str(path.parent), True)


def test_a_disk_that_is_full_is_said(folder_stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MediaUnreachable, match="No space left on device"):
        folder_stand.storage.upload(SHA256, io.BytesIO(DATA), len(DATA))
    assert [*folder_stand.names()] == []


def test_no_secret_of_the_store_is_told(
    s3_stand: Stand, object_store: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    assert s3_stand.cut is not None
    with capture_logs() as logs:
        s3_stand.storage.upload(SHA256, io.BytesIO(DATA), len(DATA))
        s3_stand.cut()
        with pytest.raises(MediaUnreachable) as caught:
            s3_stand.storage.upload(SHA256, io.BytesIO(DATA), len(DATA))
    told = "".join(traceback.format_exception(caught.value))
    assert "canary" not in f"{told}{s3_stand.storage!r}{logs}{caplog.text}"
    assert "SlowDown" in str(caught.value)


def test_a_bucket_that_is_not_there_is_said(object_store: ObjectStore) -> None:
    nowhere = storage(Settings(media=f"s3://no-such-bucket?endpoint={object_store.url}&region=x"))
    with pytest.raises(MediaUnreachable, match="Make the bucket"):
        nowhere.upload(SHA256, io.BytesIO(DATA), len(DATA))
    with pytest.raises(MediaUnreachable, match="Make the bucket"):
        nowhere.probe()


def test_a_store_that_is_not_there_is_said(aws_alone: None) -> None:
    nowhere = storage(Settings(media=f"s3://{BUCKET}?endpoint=http://127.0.0.1:9&region=x"))
    with pytest.raises(MediaUnreachable, match="cannot be reached"):
        nowhere.probe()


@pytest.fixture
def aws_alone(object_store: ObjectStore) -> None:
    """Credentials, as the object store's fixture sets them."""
