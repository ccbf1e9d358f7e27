"""Sealing credentials, and the key they are sealed with."""

from __future__ import annotations

import base64
import multiprocessing
import os
import stat
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from publisher.config import Settings
from publisher.vault import Vault, VaultError

KEY = bytes(range(32))
vault = Vault(KEY, "deployment-a")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 2**62))
def test_what_is_sealed_opens(secret: str, channel_id: int) -> None:
    assert vault.open(vault.seal(secret, channel_id=channel_id), channel_id=channel_id) == secret


def test_the_same_secret_is_sealed_differently_each_time() -> None:
    sealed = {vault.seal("token", channel_id=1) for _ in range(100)}
    assert len(sealed) == 100
    assert all(b"token" not in one for one in sealed)


@pytest.mark.parametrize(
    ("other", "channel_id"),
    [
        (Vault(KEY, "deployment-a"), 2),
        (Vault(KEY, "deployment-b"), 1),
        (Vault(bytes(32), "deployment-a"), 1),
    ],
    ids=["another channel", "another deployment", "another key"],
)
def test_it_opens_nowhere_else(other: Vault, channel_id: int) -> None:
    sealed = vault.seal("token", channel_id=1)
    with pytest.raises(VaultError, match=f"channel {channel_id} was sealed for another") as caught:
        other.open(sealed, channel_id=channel_id)
    assert "reconnect the channel" in str(caught.value)
    assert caught.value.code == "vault"


@pytest.mark.parametrize("position", range(len(vault.seal("t", channel_id=1))))
def test_one_changed_bit_is_noticed(position: int) -> None:
    sealed = bytearray(vault.seal("t", channel_id=1))
    sealed[position] ^= 1
    with pytest.raises(VaultError):
        vault.open(bytes(sealed), channel_id=1)


@pytest.mark.parametrize("length", range(30))
def test_a_cut_seal_is_noticed(length: int) -> None:
    with pytest.raises(VaultError, match="reconnect the channel"):
        vault.open(vault.seal("t", channel_id=1)[:length], channel_id=1)


def test_a_newer_version_is_named_as_such() -> None:
    with pytest.raises(VaultError, match="a newer version sealed it"):
        vault.open(b"\x02" + vault.seal("t", channel_id=1)[1:], channel_id=1)


def test_the_key_is_never_shown() -> None:
    settings = Settings(vault_key=SecretStr(base64.b64encode(KEY).decode()))
    shown = f"{vault!r} {vault} {settings!r} {Vault.from_settings(settings, 'a')!r}"
    assert base64.b64encode(KEY).decode() not in shown
    assert repr(KEY) not in shown
    assert not hasattr(vault, "__dict__")


def test_the_key_from_the_variable_is_the_key() -> None:
    settings = Settings(vault_key=SecretStr(base64.b64encode(KEY).decode()))
    sealed = Vault.from_settings(settings, "deployment-a").seal("token", channel_id=1)
    assert vault.open(sealed, channel_id=1) == "token"


@pytest.mark.parametrize("text", ["", "short", "é", base64.b64encode(bytes(31)).decode(), "=" * 44])
def test_a_variable_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(VaultError, match="PUBLISHER_VAULT_KEY does not hold a sealing key"):
        Vault.from_settings(Settings(vault_key=SecretStr(text)), "a")


def test_a_missing_key_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    umask = os.umask(0)
    try:
        sealed = Vault.from_settings(settings, "a").seal("token", channel_id=1)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(settings.key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(settings.home.stat().st_mode) == 0o700
    assert [path.name for path in settings.home.iterdir()] == ["vault.key"]
    assert Vault.from_settings(settings, "a").open(sealed, channel_id=1) == "token"


def test_the_file_holds_what_the_variable_would(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    sealed = Vault.from_settings(settings, "a").seal("token", channel_id=1)
    as_variable = Settings(vault_key=SecretStr(settings.key_file.read_text()))
    assert Vault.from_settings(as_variable, "a").open(sealed, channel_id=1) == "token"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660, 0o666, 0o610])
def test_a_key_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    settings = Settings(home=tmp_path)
    Vault.from_settings(settings, "a")
    settings.key_file.chmod(mode)
    with pytest.raises(VaultError, match=f"{mode:04o}.*chmod 600"):
        Vault.from_settings(settings, "a")


@pytest.mark.parametrize("content", [b"", b"short\n", bytes(32), b"A" * 2_000])
def test_a_key_file_that_holds_no_key_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    settings = Settings(home=tmp_path)
    settings.key_file.touch(0o600)
    settings.key_file.write_bytes(content)
    with pytest.raises(VaultError, match="does not hold a sealing key"):
        Vault.from_settings(settings, "a")
    assert settings.key_file.read_bytes() == content


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(VaultError, match=r"cannot be read or made: .*PUBLISHER_VAULT_KEY"):
        Vault.from_settings(Settings(home=tmp_path / "home"), "a")


def _seal_when_all_are_there(home: Path, barrier: Barrier, folder: Path, number: int) -> None:
    barrier.wait(30)
    vault = Vault.from_settings(Settings(home=home), "a")
    (folder / f"{number}").write_bytes(vault.seal("token", channel_id=1))


def test_processes_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    count = 4
    barrier = context.Barrier(count)
    home, folder = tmp_path / "home", tmp_path / "sealed"
    folder.mkdir()
    processes = [
        context.Process(target=_seal_when_all_are_there, args=(home, barrier, folder, number))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    settled = Vault.from_settings(Settings(home=home), "a")
    opened = [settled.open(path.read_bytes(), channel_id=1) for path in folder.iterdir()]
    assert opened == ["token"] * count
    assert [path.name for path in home.iterdir()] == ["vault.key"]
