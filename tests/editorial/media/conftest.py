"""A library over each kind of storage: a real database, a real folder, a real S3 server."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image
from sqlalchemy import text

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.editorial.media import Library, Storage, storage
from publisher.editorial.media.storage import CHUNK_BYTES, object_name
from tests.witness.conftest import AWS, s3
from tests.witness.object_store import BUCKET, ObjectStore

TABLES = ("media", "media_uploads", "media_chunks")


@dataclass(frozen=True)
class Stand:
    """A storage with what a test may do to it."""

    storage: Storage
    plant: Callable[[str, bytes | None], object]
    """Put these bytes in the place of an object, past the storage; None: take it away."""
    cut: Callable[[], object] | None
    """Make it unreachable. None: it goes only with the database itself."""
    names: Callable[[], Iterable[str]]
    """What lies there."""


@pytest.fixture(scope="session")
def shared_object_store() -> Iterator[ObjectStore]:
    running = ObjectStore()
    with running.serving():
        yield running


@pytest.fixture
def object_store(
    shared_object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[ObjectStore]:
    environment = AWS | {"AWS_CONFIG_FILE": str(tmp_path / "no"), "HOME": str(tmp_path)}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    client = s3(shared_object_store)
    client.create_bucket(Bucket=BUCKET)
    yield shared_object_store
    shared_object_store.down = False
    for entry in client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
        client.delete_object(Bucket=BUCKET, Key=entry["Key"])
    client.delete_bucket(Bucket=BUCKET)


@pytest.fixture
def database_stand(owner_database: Database) -> Stand:
    def plant(sha256: str, data: bytes | None) -> None:
        key = bytes.fromhex(sha256)
        with owner_database.engine.begin() as conn:
            conn.execute(text("DELETE FROM media_chunks WHERE sha256 = :key"), {"key": key})
            for number, at in enumerate(range(0, len(data or b""), CHUNK_BYTES)):
                conn.execute(
                    text("INSERT INTO media_chunks VALUES (:key, :number, :bytes)"),
                    {"key": key, "number": number, "bytes": (data or b"")[at : at + CHUNK_BYTES]},
                )

    def names() -> list[str]:
        with owner_database.engine.connect() as conn:
            return [*conn.scalars(text("SELECT DISTINCT encode(sha256, 'hex') FROM media_chunks"))]

    return Stand(storage(Settings()), plant, None, names)


@pytest.fixture
def folder_stand(tmp_path: Path) -> Stand:
    volume = tmp_path / "volume"
    volume.mkdir()

    def plant(sha256: str, data: bytes | None) -> None:
        path = volume / object_name(sha256)
        path.unlink()
        if data is not None:
            path.write_bytes(data)

    return Stand(
        storage(Settings(media=str(volume))),
        plant,
        cut=lambda: volume.rename(tmp_path / "unmounted"),
        names=lambda: [path.name for path in volume.rglob("*") if path.is_file()],
    )


@pytest.fixture
def s3_stand(object_store: ObjectStore) -> Stand:
    client = s3(object_store)
    address = f"s3://{BUCKET}/media?endpoint={object_store.url}&region=us-east-1"

    def plant(sha256: str, data: bytes | None) -> None:
        where = {"Bucket": BUCKET, "Key": f"media/{object_name(sha256)}"}
        if data is None:
            client.delete_object(**where)
        else:
            client.put_object(**where, Body=data)

    def cut() -> None:
        object_store.down = True

    def names() -> list[str]:
        found = client.list_objects_v2(Bucket=BUCKET).get("Contents", ())
        return [entry["Key"].rpartition("/")[2] for entry in found]

    return Stand(storage(Settings(media=address)), plant, cut, names)


@pytest.fixture(params=["database", "folder", "s3"])
def stand(request: pytest.FixtureRequest) -> Stand:
    found = request.getfixturevalue(f"{request.param}_stand")
    assert isinstance(found, Stand)
    return found


@pytest.fixture
def library(app_database: Database, stand: Stand) -> Library:
    return Library(app_database.engine, stand.storage)


@pytest.fixture
def shelf(app_database: Database, database_stand: Stand) -> Library:
    """A library in the database alone."""
    return Library(app_database.engine, database_stand.storage)


@pytest.fixture
def rows(owner_database: Database) -> Callable[[], dict[str, int]]:
    """How many rows each table of media has."""

    def count() -> dict[str, int]:
        with owner_database.engine.connect() as conn:
            return {
                name: conn.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
                for name in TABLES
            }

    return count


def encoded(image: Image.Image, kind: str, **how: object) -> bytes:
    """The picture as a file."""
    file = io.BytesIO()
    image.save(file, kind, **how)  # type: ignore[arg-type]
    return file.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def noise(width: int = 60, height: int = 40) -> Image.Image:
    return Image.effect_noise((width, height), 90).convert("RGB")
