"""The witness as a file: whole whatever happens, private, and never waited for without end."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import pwd
import resource
import signal
import stat
import time
from pathlib import Path

import pytest

from publisher.config import Settings
from publisher.engine.witness import WitnessUnreachable, WitnessUnreadable
from publisher.witness import file, store
from publisher.witness.file import File
from tests.witness.places import RECORD, Place, ticked, write_for_ever

spawn = multiprocessing.get_context("spawn")


def test_unset_it_lies_in_the_home_which_is_made(tmp_path: Path) -> None:
    witness = store(Settings(home=tmp_path / "new" / "home"))
    assert witness.read() is None
    witness.write(RECORD, over=None)
    assert witness.name == str(tmp_path / "new" / "home" / "witness")
    assert stat.S_IMODE((tmp_path / "new" / "home").stat().st_mode) == 0o700


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    File(tmp_path / "witness").write(RECORD, over=None)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"witness": 0o600, "witness.lock": 0o600}


def test_a_writer_that_is_killed_leaves_it_whole_and_free(tmp_path: Path) -> None:
    path = tmp_path / "witness"
    ticks = []
    for _ in range(3):
        writer = spawn.Process(target=write_for_ever, args=(Place(str(path)),))
        writer.start()
        before = path.read_bytes() if path.exists() else b""
        until = time.monotonic() + 30
        while (not path.exists() or path.read_bytes() == before) and time.monotonic() < until:
            time.sleep(0.001)
        os.kill(writer.pid or 0, signal.SIGKILL)
        writer.join()
        held = File(path).read()
        assert held is not None
        File(path).write(ticked(held.record.tick + 1), over=held.stamp)
        ticks.append(held.record.tick)
    assert ticks == sorted(set(ticks))
    assert {entry.name for entry in tmp_path.iterdir()} == {"witness", "witness.lock"}


def test_a_full_disk_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "witness"
    stamp = File(path).write(ticked(60), over=None)
    writer = spawn.Process(target=_write_without_room, args=(path, stamp))
    writer.start()
    writer.join(30)
    assert writer.exitcode == 0
    held = File(path).read()
    assert held is not None
    assert held.record.tick == 60
    assert {entry.name for entry in tmp_path.iterdir()} == {"witness", "witness.lock"}


def _write_without_room(path: Path, stamp: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
    try:
        File(path).write(ticked(120), over=stamp)
    except WitnessUnreachable:
        return
    raise AssertionError


def test_one_who_holds_the_lock_and_is_stopped_does_not_stop_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_LOCK_SECONDS", 0.05)
    witness = File(tmp_path / "witness")
    with (tmp_path / "witness.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(WitnessUnreachable, match="has held"):
            witness.write(RECORD, over=None)
    witness.write(RECORD, over=None)


def test_a_folder_or_a_pipe_in_its_place_is_no_witness(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(WitnessUnreadable):
            File(tmp_path / name).read()
        with pytest.raises(WitnessUnreadable):
            File(tmp_path / name).write(RECORD, over=None)
        File(tmp_path / name).replace(RECORD)
        assert File(tmp_path / name).read() is not None


def test_a_path_through_a_file_is_out_of_reach(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WitnessUnreachable):
        File(tmp_path / "file" / "witness").read()


def test_a_link_to_it_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    link = tmp_path / "witness"
    link.symlink_to(tmp_path / "volume" / "real")
    File(link).write(RECORD, over=None)
    assert link.is_symlink()
    assert File(tmp_path / "volume" / "real").read() is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write for another")
def test_root_writes_it_for_the_owner_of_the_folder(tmp_path: Path) -> None:
    owner = pwd.getpwnam("nobody").pw_uid
    os.chown(tmp_path, owner, -1)
    File(tmp_path / "witness").write(RECORD, over=None)
    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {owner}
