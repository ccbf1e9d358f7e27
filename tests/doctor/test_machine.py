"""The machine itself: its disks, its limits, its time zones."""

from __future__ import annotations

import resource
import shutil
import subprocess
import zoneinfo
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from publisher.doctor import spools
from publisher.doctor.finding import Severity
from publisher.doctor.ward import Limits
from tests.doctor.patient import Patient

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
ZONES = Path("/usr/share/zoneinfo")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte and sixty files."""
    folder = tmp_path / "small"
    folder.mkdir(mode=0o700)
    options = ["-t", "tmpfs", "-o", "size=1m,nr_inodes=60,mode=0700", "none"]
    mounted = subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("this user may mount nothing")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_nearly_full(patient: Patient, small_disk: Path) -> None:
    ill = patient.has(home=small_disk)
    assert ill.ills("disk") == [(E, "disk_full"), (E, "inodes_used_up")]
    (small_disk / "spool").mkdir()
    assert ill.ills("spool-disk") == [(N, "spool_in_memory")]
    (small_disk / "fill").write_bytes(b"x" * (1 << 19))
    found = ill.found("disk")
    assert len(found) == 2  # once for each file system, not for each folder
    roomy = Limits(disk_warning=1, disk_error=0, inodes_warning=1, inodes_error=0)
    assert replace(ill, limits=roomy).codes("disk") == []
    worrying = Limits(disk_error=0, inodes_error=0)
    assert replace(ill, limits=worrying).ills("disk") == [(W, "disk_full"), (W, "inodes_used_up")]


def test_a_home_that_is_missing_open_or_no_folder(patient: Patient, tmp_path: Path) -> None:
    assert patient.codes("home") == []
    assert patient.has(home=tmp_path / "nowhere").ills("home") == [(N, "home_missing")]
    patient.settings.home.chmod(0o755)
    assert patient.ills("home") == [(N, "home_open")]
    file = tmp_path / "file"
    file.touch()
    assert patient.has(home=file).ills("home") == [(E, "home_unusable")]


def test_fewer_open_files_than_hands_need(patient: Patient) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        assert patient.codes("open-files") == []
        assert patient.has(concurrency=300).ills("open-files") == [(W, "few_files")]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_spool_folder_in_which_no_file_can_be_made(patient: Patient) -> None:
    assert patient.codes("spool") == []
    (patient.settings.home / "spool").mkdir()
    assert patient.codes("spool") == []
    assert [*(patient.settings.home / "spool").iterdir()] == []  # the probe is gone
    (patient.settings.home / "spool").rmdir()
    (patient.settings.home / "spool").touch()
    assert patient.ills("spool") == [(E, "spool_unusable")]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ext4", []),
        ("nfs4", [(E, "spool_on_network")]),
        ("cifs", [(E, "spool_on_network")]),
        ("fuse.sshfs", [(E, "spool_on_network")]),
        ("tmpfs", [(N, "spool_in_memory")]),
    ],
)
def test_kinds_of_file_systems(
    patient: Patient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    expected: list[tuple[Severity, str]],
) -> None:
    """Lines as the kernel writes them; no server of files is at hand."""
    home = tmp_path / "with space"
    (home / "spool").mkdir(parents=True)
    mounts = tmp_path / "mountinfo"
    at = str(home.resolve()).replace(" ", "\\040")
    mounts.write_text(
        "22 1 253:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        f"41 22 0:39 / {at} rw,relatime shared:9 master:3 - {kind} server:/x rw,vers=4\n"
        f"42 22 0:40 / {at}not rw - nfs4 server:/y rw\n"
    )
    monkeypatch.setattr(spools, "_MOUNTS", mounts)
    assert patient.has(home=home).ills("spool-disk") == expected


def test_the_kernels_own_list_of_mounts_is_read(small_disk: Path) -> None:
    assert spools.file_system(small_disk) == "tmpfs"
    assert spools.file_system(small_disk.parent) != "tmpfs"


@pytest.fixture
def old_zones(tmp_path: Path) -> Iterator[Path]:
    """Zone files that come first, in which Tehran keeps the time of Tokyo."""
    folder = tmp_path / "zones"
    (folder / "Asia").mkdir(parents=True)
    shutil.copy(ZONES / "Asia/Tokyo", folder / "Asia/Tehran")
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([folder, *before])
    zoneinfo.ZoneInfo.clear_cache()
    yield folder
    zoneinfo.reset_tzpath(before)
    zoneinfo.ZoneInfo.clear_cache()


def use_zone(patient: Patient, zone: str) -> None:
    lane = patient.lane()
    patient.plant(
        "WITH p AS (INSERT INTO posts (created_by) VALUES ('t') RETURNING id)"
        " INSERT INTO post_channels SELECT id, %s, now(), %s FROM p",
        lane.channel_id,
        zone,
    )


@pytest.mark.both_servers
def test_zones_in_use_agree(patient: Patient) -> None:
    use_zone(patient, "Asia/Tokyo")
    use_zone(patient, "Asia/Ho_Chi_Minh")
    assert {one.code for one in patient.found("zones")} <= {"zones_age"}


@pytest.mark.both_servers
def test_a_zone_in_use_with_other_rules_here(patient: Patient, old_zones: Path) -> None:
    use_zone(patient, "Asia/Tehran")
    found = [one for one in patient.found("zones") if one.code == "zones_differ"]
    assert {one.severity for one in found} == {W}
    assert [one.what.partition(" differ")[0] for one in found] == [
        "Python and PostgreSQL",
        "Python and the package tzdata",
        "Python and the system",
    ]
    assert all("Asia/Tehran" in one.what and str(old_zones) in one.remedy for one in found)


def test_a_zone_that_nobody_uses_is_noted(patient: Patient, old_zones: Path) -> None:
    found = [one for one in patient.found("zones") if "Asia/Tehran" in one.what]
    assert {(one.severity, one.code) for one in found} == {(N, "zones_age")}


def test_a_zone_in_use_that_is_unknown(patient: Patient) -> None:
    use_zone(patient, "Mars/Olympus")
    assert (E, "zone_unknown") in patient.ills("zones")
