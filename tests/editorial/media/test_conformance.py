"""What every storage must do."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, text

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.walls import within
from publisher.editorial.media import (
    BytesChanged,
    Library,
    MediaLost,
    MediaUnreachable,
    Piece,
    storage,
)
from publisher.editorial.media.storage import CHUNK_BYTES
from publisher.engine.errors import NotFound
from publisher.engine.outcome import Deferred, Reason
from publisher.transport import FilePart, Request, Transport
from tests.editorial.media.conftest import Stand
from tests.transport.conftest import MakePermit, make_permit
from tests.transport.peer import OK, Peer, answering

Rows = Callable[[], dict[str, int]]
NONE = {"media": 0, "media_uploads": 0, "media_chunks": 0}

__all__ = ["make_permit"]


def piece_of(data: bytes) -> Piece:
    digest = hashlib.sha256(data).hexdigest()
    return Piece(digest, "image/png", len(data), digest)


def keep(library: Library, data: bytes) -> str:
    return library.add(piece_of(data), io.BytesIO(data), who="editor").sha256


def taken(library: Library, sha256: str) -> tuple[bytes, MediaLost | None]:
    """What a reader got, and how it ended."""
    got = b""
    try:
        for chunk in library.read(sha256):
            got += chunk
    except MediaLost as lost:
        return got, lost
    return got, None


@pytest.mark.parametrize("size", [1, CHUNK_BYTES, 9 * CHUNK_BYTES + 1])
def test_bytes_come_back_as_they_were(library: Library, database: Database, size: int) -> None:
    data = os.urandom(size)
    for _ in range(2):
        keep(library, data)
    # As a worker reads them: in another role, on other connections.
    chunks = [*library.within(database.engine).read(hashlib.sha256(data).hexdigest())]
    assert b"".join(chunks) == data
    assert max(map(len, chunks)) <= CHUNK_BYTES


def test_what_is_kept_is_told(library: Library, stand: Stand, app_database: Database) -> None:
    data = b"a picture"
    piece = Piece(
        hashlib.sha256(data).hexdigest(), "image/jpeg", 9, "0" * 64, width=3, height=2, frames=1
    )
    kept = library.add(piece, io.BytesIO(data), who="Ana")
    with app_database.engine.connect() as conn:
        assert library.find(conn, piece.sha256) == kept
        assert library.newest(conn, limit=5) == [kept]
        assert library.unknown(conn, [piece.sha256, "0" * 64, "no hex"]) == {"0" * 64, "no hex"}
    assert (kept.place, kept.created_by) == (stand.storage.place, "Ana")
    assert (kept.width, kept.height, kept.original_sha256) == (3, 2, "0" * 64)
    described = kept.described("two")
    assert (described.sha256, described.size, described.alt) == (piece.sha256, 9, "two")


@pytest.mark.parametrize("sha256", ["0" * 64, "no hex", ""])
def test_what_was_never_kept_is_lost_at_once(library: Library, sha256: str) -> None:
    with pytest.raises(KeyError):
        library.read(sha256)


def test_what_is_gone_is_noticed(library: Library, stand: Stand) -> None:
    sha256 = keep(library, b"here")
    stand.plant(sha256, None)
    got, lost = taken(library, sha256)
    assert got == b""
    assert lost is not None
    assert not lost.is_damaged
    assert stand.storage.name in str(lost)


@pytest.mark.parametrize("size", [40, 3 * CHUNK_BYTES])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: b"x" + data,
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: bytes([data[0] ^ 128]) + data[1:],
    ],
    ids=["cut", "longer", "last", "first"],
)
def test_damage_is_noticed_and_nobody_has_it_whole(
    library: Library, stand: Stand, size: int, damage: Callable[[bytes], bytes]
) -> None:
    data = os.urandom(size)
    sha256 = keep(library, data)
    stand.plant(sha256, damage(data))
    got, lost = taken(library, sha256)
    assert lost is not None
    assert lost.is_damaged
    assert len(got) < size - 1


@pytest.mark.parametrize("size", [40, 3 * CHUNK_BYTES])
def test_damaged_bytes_are_not_sent(
    library: Library, stand: Stand, make_permit: MakePermit, settings: Settings, size: int
) -> None:
    data = os.urandom(size)
    sha256 = keep(library, data)
    stand.plant(sha256, data[:-1] + bytes([data[-1] ^ 1]))
    transport = Transport(settings)
    part = FilePart("photo", "photo", "image/png", size, lambda: library.read(sha256))
    with Peer(answering(OK)) as peer:
        for request in (
            Request("POST", peer.url(), form=[("a", "b")], files=[part]),
            Request("POST", peer.url(), content=part),
        ):
            outcome = transport.publish(request, make_permit())
            assert isinstance(outcome, Deferred)
            assert outcome.reason is Reason.CONNECT_FAILED
            assert "damaged" in outcome.detail
        assert peer.requests == []


def test_adding_again_brings_it_back(library: Library, stand: Stand) -> None:
    sha256 = keep(library, b"again")
    stand.plant(sha256, None)
    assert keep(library, b"again") == sha256
    assert taken(library, sha256) == (b"again", None)


def test_adding_again_mends_what_lies_outside(library: Library, stand: Stand) -> None:
    if stand.storage.place == "database":
        pytest.skip("its own checksums and backups are there for that")
    sha256 = keep(library, b"again")
    stand.plant(sha256, b"wrong")
    keep(library, b"again")
    assert taken(library, sha256) == (b"again", None)


def test_bytes_of_another_hash_are_not_kept(library: Library, stand: Stand, rows: Rows) -> None:
    with pytest.raises(BytesChanged):
        library.add(piece_of(b"one"), io.BytesIO(b"two"), who="editor")
    assert rows() == NONE
    assert [*stand.names()] == []


def test_a_storage_that_fails_leaves_no_reference(
    library: Library, stand: Stand, rows: Rows
) -> None:
    if stand.cut is None:
        pytest.skip("without the database there is nothing to refer from")
    stand.cut()
    with pytest.raises(MediaUnreachable) as caught:
        keep(library, b"lost")
    assert stand.storage.name in str(caught.value)
    assert rows() == NONE
    with pytest.raises(MediaUnreachable):
        library.probe()


def test_one_that_is_unreachable_is_not_called_empty(library: Library, stand: Stand) -> None:
    if stand.cut is None:
        pytest.skip("as above")
    sha256 = keep(library, b"there")
    stand.cut()
    with pytest.raises(MediaUnreachable):
        taken(library, sha256)


def test_no_reference_outlives_its_transaction(
    library: Library, app_database: Database, rows: Rows
) -> None:
    piece, file = piece_of(b"x"), io.BytesIO(b"x")
    library.upload(piece, file)
    with app_database.engine.connect() as conn:
        with conn.begin() as transaction:
            library.record(conn, piece, file, who="editor")
            transaction.rollback()
        with pytest.raises(NotFound):
            library.find(conn, piece.sha256)
    assert rows() == NONE


def test_twenty_at_once_are_one(library: Library, stand: Stand, rows: Rows) -> None:
    data = os.urandom(CHUNK_BYTES + 1)
    with ThreadPoolExecutor(20) as pool:
        hashes = {*pool.map(lambda _: keep(library, data), range(20))}
    assert len(hashes) == 1
    chunks = 2 if stand.storage.place == "database" else 0
    assert rows() == {"media": 1, "media_uploads": 1, "media_chunks": chunks}
    assert len({*stand.names()}) == 1
    assert taken(library, hashes.pop()) == (data, None)


def test_a_reader_holds_no_connection_between_chunks(
    library: Library, app_database: Database
) -> None:
    sha256 = keep(library, bytes(3 * CHUNK_BYTES))
    chunks = library.read(sha256)
    next(chunks)
    assert "Current Checked out connections: 0" in app_database.engine.pool.status()
    assert len(b"".join(chunks)) == 2 * CHUNK_BYTES


def test_a_probe_leaves_nothing(library: Library, stand: Stand) -> None:
    library.probe()
    assert [*stand.names()] == []


def test_what_the_database_has_stays_readable_elsewhere(
    library: Library, app_database: Database, owner_database: Database, stand: Stand
) -> None:
    inside = Library(app_database.engine, storage(Settings()))
    sha256 = keep(inside, b"earlier")
    assert taken(library, sha256) == (b"earlier", None)
    keep(library, b"earlier")
    stand.plant(sha256, b"what the database has counts")
    if stand.storage.place != "database":
        assert taken(library, sha256) == (b"earlier", None)


def test_what_lay_in_a_storage_that_was_given_up_moves_when_it_is_added_again(
    library: Library, app_database: Database, stand: Stand
) -> None:
    inside = Library(app_database.engine, storage(Settings()))
    sha256 = keep(library, b"moves")
    if stand.storage.place != "database":
        with pytest.raises(MediaLost, match="PUBLISHER_MEDIA"):
            inside.read(sha256)
    assert keep(inside, b"moves") == sha256
    assert taken(inside, sha256) == (b"moves", None)


@pytest.fixture
def other(app_database: Database, owner_database: Database) -> tuple[Engine, Engine]:
    """Two workspaces, as the pages' role is in each."""
    with owner_database.engine.begin() as conn:
        conn.execute(
            text("INSERT INTO workspaces (slug, name, zone) VALUES ('other', 'Other', 'UTC')")
        )
        slugs = [*conn.scalars(text("SELECT slug FROM workspaces ORDER BY id"))]
    first, second = (within(app_database.engine, slug) for slug in slugs)
    return first, second


def test_a_workspace_sees_what_it_added(
    library: Library, other: tuple[Engine, Engine], rows: Rows
) -> None:
    ours, theirs = (library.within(engine) for engine in other)
    sha256 = keep(ours, b"ours")
    with other[1].connect() as conn:
        with pytest.raises(NotFound):
            theirs.find(conn, sha256)
        assert theirs.newest(conn, limit=5) == []
        assert theirs.unknown(conn, [sha256]) == {sha256}
        for table in ("media", "media_uploads", "media_chunks"):
            assert conn.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() == 0
    with pytest.raises(MediaLost):
        theirs.read(sha256)
    kept = theirs.add(piece_of(b"ours"), io.BytesIO(b"ours"), who="somebody else")
    assert kept.created_by == "somebody else"
    assert taken(theirs, sha256) == (b"ours", None)
    with other[0].connect() as conn:
        assert ours.find(conn, sha256).created_by == "editor"
    counted = rows()
    assert (counted["media"], counted["media_uploads"]) == (1, 2)
