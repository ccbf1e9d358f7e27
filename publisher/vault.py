"""Seals channel credentials, so that a copy of the database alone cannot send.

AES-256-GCM with a random 96-bit nonce (NIST SP 800-38D). What is sealed opens only with the same
key, for the same channel of the same deployment: those two are the associated data. Layout: one
version byte, the nonce, then ciphertext and tag. The secret of a person's second factor is sealed
just so, for that person.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from publisher.config import Settings
from publisher.engine.errors import PublisherError

_KEY_BYTES = 32
_NONCE_BYTES = 12
_TAG_BYTES = 16
_VERSION = b"\x01"
_MORE_THAN_A_KEY = 1_000


class VaultError(PublisherError):
    """A credential or the sealing key cannot be used; the sentence says what to do."""

    code = "vault"
    exit_code = 3


class Vault:
    """Seals and opens with one key, for one deployment. Safe to share between threads."""

    __slots__ = ("_cipher", "_deployment_id", "_key")

    def __init__(self, key: bytes, deployment_id: str) -> None:
        self._cipher = AESGCM(key)
        self._deployment_id = deployment_id
        self._key = key

    @classmethod
    def at_hand(cls, settings: Settings, deployment_id: str) -> Self | None:
        """Take the key as ``from_settings`` does, and make none: None where there is no file.

        Raises ``VaultError``.
        """
        if settings.vault_key is None and not settings.key_file.exists():
            return None
        return cls.from_settings(settings, deployment_id)

    @classmethod
    def from_file(cls, path: Path, deployment_id: str) -> Self:
        """Take the key from ``path``, made when it is missing. Raises ``VaultError``."""
        return cls(_read_or_make(path), deployment_id)

    @classmethod
    def from_settings(cls, settings: Settings, deployment_id: str) -> Self:
        """Take the key from ``PUBLISHER_VAULT_KEY``, or from its file, made when it is missing.

        Raises ``VaultError`` for a key of another size, or a file that others may read.
        """
        if settings.vault_key is not None:
            text = settings.vault_key.get_secret_value()
            return cls(_decoded(text, "PUBLISHER_VAULT_KEY"), deployment_id)
        return cls(_read_or_make(settings.key_file), deployment_id)

    def for_deployment(self, deployment_id: str) -> Self:
        """The same key for another deployment: it opens nothing of this one."""
        return type(self)(self._key, deployment_id)

    @property
    def check(self) -> bytes:
        """Tells whether a key is this one, and nothing about it (HMAC-SHA-256, RFC 2104)."""
        label = b"publisher key check\x00" + self._deployment_id.encode()
        return hmac.digest(self._key, label, "sha256")

    def key_for(self, purpose: str) -> bytes:
        """A key of 32 bytes for something else than sealing, of this deployment alone.

        HMAC-SHA-256 as a key derivation function (NIST SP 800-108): neither the sealing key nor
        another purpose's can be had from it.
        """
        label = b"publisher key for\x00%s\x00%s" % (purpose.encode(), self._deployment_id.encode())
        return hmac.digest(self._key, label, "sha256")

    def seal(self, secret: str, *, channel_id: int) -> bytes:
        """Encrypt ``secret`` for one channel; different bytes each time."""
        return self._seal(secret, self._bound_to(b"%d" % channel_id))

    def open(self, sealed: bytes, *, channel_id: int) -> str:
        """Decrypt what ``seal`` made for this channel. Raises ``VaultError``."""
        if _is_damaged(sealed):
            message = (
                f"The credential of channel {channel_id} is damaged, or a newer version sealed it. "
                "Run that version, or reconnect the channel."
            )
            raise VaultError(message)
        try:
            return self._open(sealed, self._bound_to(b"%d" % channel_id))
        except InvalidTag:
            message = (
                f"The credential of channel {channel_id} was sealed for another channel or "
                "deployment, or with another key. Bring the key back, or reconnect the channel."
            )
            raise VaultError(message) from None

    def seal_for_user(self, secret: str, *, user_id: int) -> bytes:
        """Encrypt ``secret`` for one person; different bytes each time."""
        return self._seal(secret, self._bound_to(b"user %d" % user_id))

    def open_for_user(self, sealed: bytes, *, user_id: int) -> str:
        """Decrypt what ``seal_for_user`` made for this person. Raises ``VaultError``."""
        try:
            if not _is_damaged(sealed):
                return self._open(sealed, self._bound_to(b"user %d" % user_id))
        except InvalidTag:
            pass
        message = (
            f"The second factor of account {user_id} is damaged, or was sealed with another key. "
            "Bring the key back, use a recovery code, or run: publisher users forget-totp"
        )
        raise VaultError(message)

    def _seal(self, secret: str, bound_to: bytes) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return _VERSION + nonce + self._cipher.encrypt(nonce, secret.encode(), bound_to)

    def _open(self, sealed: bytes, bound_to: bytes) -> str:
        nonce, rest = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        return self._cipher.decrypt(nonce, rest, bound_to).decode()

    def _bound_to(self, whose: bytes) -> bytes:
        return b"publisher\x00%s\x00%s" % (whose, self._deployment_id.encode())

    def __repr__(self) -> str:
        return f"<Vault of deployment {self._deployment_id}>"


def _is_damaged(sealed: bytes) -> bool:
    return sealed[:1] != _VERSION or len(sealed) < 1 + _NONCE_BYTES + _TAG_BYTES


def _decoded(text: str, where: str) -> bytes:
    key = b""
    with contextlib.suppress(binascii.Error, ValueError):
        key = base64.b64decode(text.strip(), validate=True)
    if len(key) != _KEY_BYTES:
        message = (
            f"{where} does not hold a sealing key: base64 of {_KEY_BYTES} bytes. Bring back the "
            "key that channels were sealed with; with a new one they have to be reconnected."
        )
        raise VaultError(message)
    return key


def _read_or_make(path: Path) -> bytes:
    try:
        with contextlib.suppress(FileNotFoundError):
            return _read(path)
        _make(path)
        return _read(path)
    except OSError as error:
        message = (
            f"The sealing key {path} cannot be read or made: {error.strerror}. Give this process "
            "access to it, or set PUBLISHER_VAULT_KEY."
        )
        raise VaultError(message) from error


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        content = file.read(_MORE_THAN_A_KEY)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        message = (
            f"The sealing key {path} may be read by others (mode {stat.S_IMODE(mode):04o}). "
            f"Run: chmod 600 {path}"
        )
        raise VaultError(message)
    return _decoded(content.decode("ascii", errors="replace"), str(path))


def _make(path: Path) -> None:
    """Make the key file whole or not at all; when two processes try, one key stays.

    It is written under another name and then linked: ``link`` fails where the name exists, and
    nobody can read a file that is only half there.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(_KEY_BYTES)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
