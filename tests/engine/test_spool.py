"""The second witness: framing, damage at every byte, compaction, and the lock."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from publisher.engine import spool as spools
from publisher.engine.job import JobId, Token
from publisher.engine.outcome import Published
from publisher.engine.spool import (
    Abandoned,
    Opened,
    Record,
    Spool,
    abandoned,
    boot_id,
)

DEPLOYMENT = "0a0b"
LIVE = Published("1_2")


def opened(number: int = 1) -> Opened:
    return Opened(JobId(number), 1, Token(uuid4()))


def create(folder: Path, *, head: bool = True) -> Spool:
    made = Spool.create(folder)
    if head:
        made.head(deployment=DEPLOYMENT, incarnation=5)
    return made


def read(path: Path) -> Record | None:
    taken = Abandoned.take(path)
    assert taken is not None
    try:
        return taken.read()
    finally:
        taken.leave()


def closed(spool: Spool) -> Record:
    spool.close(remove=False)
    record = read(spool.path)
    assert record is not None
    return record


# What is written is read


def test_a_file_says_whose_it_is_and_what_became_of_each_send(tmp_path: Path) -> None:
    spool = create(tmp_path)
    one, two, three = opened(1), opened(2), opened(3)
    spool.open([one, two, three])
    spool.start(two.token)
    spool.start(three.token)
    spool.answer(three.token, LIVE)
    record = closed(spool)
    assert (record.deployment, record.incarnation, record.boot) == (DEPLOYMENT, 5, boot_id())
    assert record.whole
    seen = {t: (r.opened, r.started, r.outcome) for t, r in record.traces.items()}
    assert seen == {
        one.token: (one, False, None),
        two.token: (two, True, None),
        three.token: (three, True, LIVE),
    }


def test_lines_hold_on_disk_before_a_send_may_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    spool = create(tmp_path)
    folder_and_head = len(synced)
    assert folder_and_head == 2
    spool.open([opened()])
    assert len(synced) == folder_and_head + 1
    spool.close(remove=True)


def test_the_folder_and_the_file_are_closed_to_others(tmp_path: Path) -> None:
    spool = create(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert spool.path.stat().st_mode & 0o777 == 0o600
    spool.close(remove=True)
    assert not spool.path.exists()


# Writing that fails


def test_a_failed_write_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = create(tmp_path)
    one = opened()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", full)
        broken.setattr(spools, "put", full)
        with pytest.raises(OSError, match="no room"):
            spool.open([one])
        with pytest.raises(OSError, match="no room"):
            spool.start(one.token)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no room"):
            spool.open([opened()])
    spool.close(remove=True)


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    monkeypatch.setattr(spools, "put", lambda fd, data: write(fd, data[:3]))
    spool = create(tmp_path)
    one = opened()
    spool.open([one])
    spool.start(one.token)
    record = closed(spool)
    assert record.whole
    assert record.traces[one.token] == spools.Trace(one, started=True)


def test_a_line_that_the_system_refuses_is_told(tmp_path: Path) -> None:
    spool = create(tmp_path)
    one = opened()
    spool.open([one])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (spool.path.stat().st_size + 5, before[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            spool.start(one.token)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    record = closed(spool)
    assert record.whole
    assert not record.traces[one.token].started


def test_an_open_line_is_what_the_encoder_would_write() -> None:
    for can_look in (True, False):
        one = Opened(JobId(7), 2, Token(UUID(int=1)), can_look, b"\x01\xfe")
        facts = {"k": "open", "j": 7, "n": 2, "t": one.token.hex, "l": can_look, "c": "01fe"}
        assert spools._open_line(one) == spools._line(facts)


# Compaction


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "_COMPACT_BYTES", 0)


@pytest.mark.usefixtures("small")
def test_compaction_keeps_what_is_open_and_lets_the_rest_go(tmp_path: Path) -> None:
    spool = create(tmp_path)
    settled, started, answered = opened(1), opened(2), opened(3)
    spool.open([settled])
    spool.open([started, answered])
    spool.start(settled.token)
    spool.answer(settled.token, LIVE)
    spool.start(started.token)
    spool.start(answered.token)
    spool.answer(answered.token, LIVE)
    spool.forget([settled.token, Token(uuid4())])
    new = opened(4)
    spool.open([new])
    assert [path.name for path in tmp_path.iterdir()] == [spool.path.name]
    record = closed(spool)
    assert record.whole
    assert (record.deployment, record.incarnation) == (DEPLOYMENT, 5)
    seen = {t: (r.started, r.outcome) for t, r in record.traces.items()}
    assert seen == {
        started.token: (True, None), answered.token: (True, LIVE), new.token: (False, None),
    }  # fmt: skip


@pytest.mark.usefixtures("small")
def test_a_compacted_file_is_still_locked(tmp_path: Path) -> None:
    spool = create(tmp_path)
    for _ in range(3):
        spool.open([opened()])
        assert list(abandoned(tmp_path)) == []
    spool.start(opened().token)
    spool.close(remove=False)
    assert len(list(abandoned(tmp_path))) == 1


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_a_compaction_that_fails_leaves_the_file_that_others_will_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Lines written afterwards must not go where nobody looks: their sends would read *not
    started* when this process dies.
    """
    spool = create(tmp_path)
    one, two = opened(1), opened(2)
    spool.open([one])

    def broken(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as failing:
        owner = Path if call == "rename" else os
        failing.setattr(owner, call, broken)
        with pytest.raises(OSError, match="no room"):
            spool.open([two])
    monkeypatch.setattr(spools, "_COMPACT_BYTES", 1 << 20)
    spool.open([two])
    spool.start(two.token)
    assert list(abandoned(tmp_path)) == []
    record = closed(spool)
    assert record.traces[two.token].started


@pytest.mark.usefixtures("small")
def test_who_opened_the_old_file_before_a_compaction_does_not_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = create(tmp_path)
    flock = fcntl.flock

    def compact_first(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        spool.open([opened()])
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", compact_first)
    assert Abandoned.take(spool.path) is None
    spool.close(remove=True)


# The lock


def test_a_file_appears_only_when_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or somebody could take it for abandoned between its making and its locking."""
    flock = fcntl.flock
    taken: list[Abandoned] = []

    def look_first(descriptor: int, how: int) -> None:
        with monkeypatch.context() as calm:
            calm.setattr(fcntl, "flock", flock)
            taken.extend(abandoned(tmp_path))
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", look_first)
    spool = create(tmp_path)
    assert taken == []
    spool.close(remove=True)


HOLDER = """
import sys
from pathlib import Path
from publisher.engine.spool import Spool
spool = Spool.create(Path(sys.argv[1]))
spool.head(deployment="0a0b", incarnation=5)
print(spool.path, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that lives with a file of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.communicate()


def test_the_file_of_a_living_process_is_not_taken_until_it_dies(
    tmp_path: Path, holder: tuple[subprocess.Popen[str], Path]
) -> None:
    process, path = holder
    assert Abandoned.take(path) is None
    assert list(abandoned(tmp_path)) == []
    process.kill()
    process.wait()
    (taken,) = abandoned(tmp_path)
    assert taken.path == path
    assert list(abandoned(tmp_path)) == []  # the taker holds it now
    taken.remove()
    assert Abandoned.take(path) is None


def test_ones_own_file_is_left_out(tmp_path: Path) -> None:
    spool = create(tmp_path)
    spool.close(remove=False)
    assert list(abandoned(tmp_path, but=spool.path)) == []


def test_a_file_without_head_is_set_aside(tmp_path: Path) -> None:
    empty = create(tmp_path, head=False)
    empty.close(remove=False)
    (taken,) = abandoned(tmp_path)
    assert taken.read() is None
    taken.set_aside()
    assert list(tmp_path.iterdir()) == []
    torn = tmp_path / f"torn{spools.SUFFIX}"
    torn.write_bytes(spools._line({"k": "head"})[:20])
    (taken,) = abandoned(tmp_path)
    assert taken.read() is None
    taken.set_aside()
    assert [path.name for path in tmp_path.iterdir()] == ["torn.damaged"]
