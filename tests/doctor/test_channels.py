"""Channels that cannot send, and what waits behind them."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from publisher.doctor.finding import Severity
from publisher.engine.adapter import ChannelHealth
from publisher.engine.job import Channel
from publisher.engine.registry import Registry
from publisher.vault import Vault
from tests.doctor.patient import Patient
from tests.engine.ground import Lane
from tests.engine.platform import Fake

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
BLOCK = (
    "UPDATE gates SET blocked_reason = 'needs_reconnecting', blocked_at = now()"
    " WHERE channel_id = %s"
)
PAUSE = "UPDATE gates SET paused_at = now(), paused_by = 'ann' WHERE channel_id = %s"


def key() -> SecretStr:
    return SecretStr(base64.b64encode(os.urandom(32)).decode())


def seal(patient: Patient, lane: Lane, secret: str = "s3cret") -> Patient:
    """The lane's channel with a credential that ``patient``'s key opens."""
    deployment = patient.ground.one("SELECT id::text FROM deployment")
    vault = Vault.from_settings(patient.settings, deployment)
    sealed = vault.seal(secret, channel_id=lane.channel_id)
    patient.plant("UPDATE channels SET sealed = %s WHERE id = %s", sealed, lane.channel_id)
    return patient


def test_a_channel_that_works(patient: Patient) -> None:
    lane = patient.lane()
    lane.add()
    seal(patient, lane)
    assert patient.codes("gates", "due", "key", "credentials", "platforms", "access") == []


def test_blocked_paused_and_without_a_gate(patient: Patient) -> None:
    blocked, paused, bare = patient.lane(), patient.lane(), patient.lane()
    patient.plant(BLOCK, blocked.channel_id)
    patient.plant(PAUSE, paused.channel_id)
    patient.plant("DELETE FROM gates WHERE channel_id = %s", bare.channel_id)
    assert patient.ills("gates") == [(W, "channel_blocked"), (E, "gate_missing")]
    assert patient.codes("due") == []
    for lane in (blocked, blocked, paused, bare):
        lane.add()
    later = datetime.now(UTC) + timedelta(hours=1)
    blocked.add(run_at=later)
    found = patient.found("due")
    assert [(one.severity, one.code) for one in found] == [
        (W, "due_on_blocked"),
        (N, "due_on_paused"),
        (W, "due_on_blocked"),
    ]
    assert found[0].what.startswith("2 posts are due on")
    assert "publisher channels reconnect" in found[0].remedy
    assert "publisher channels resume" in found[1].remedy


def test_a_channel_without_a_credential(patient: Patient) -> None:
    patient.lane()
    assert patient.ills("key", "credentials") == [(W, "credential_missing")]
    assert not patient.settings.key_file.exists()  # asking made no key


def test_a_key_that_is_gone_is_not_made_anew(patient: Patient) -> None:
    seal(patient, patient.lane())
    assert patient.settings.key_file.exists()
    assert patient.codes("key", "credentials") == []
    patient.settings.key_file.unlink()
    assert patient.ills("key", "credentials") == [(E, "key_missing")]
    assert not patient.settings.key_file.exists()


def test_a_key_that_was_replaced(patient: Patient) -> None:
    first, second = patient.lane(), patient.lane()
    mine = patient.has(vault_key=key())
    seal(seal(mine, first), second)
    assert mine.codes("key", "credentials") == []
    assert patient.has(vault_key=key()).ills("key", "credentials") == [(E, "key_of_another")]


def test_a_credential_that_the_key_does_not_open(patient: Patient) -> None:
    """Copied by hand from another channel, or damaged."""
    good, copied, damaged = patient.lane(), patient.lane(), patient.lane()
    for lane in (good, copied, damaged):
        seal(patient, lane)
    of = "SELECT sealed FROM channels WHERE id ="
    patient.plant(
        f"UPDATE channels SET sealed = ({of} %s) WHERE id = %s", good.channel_id, copied.channel_id
    )
    patient.plant("UPDATE channels SET sealed = '\\x01' WHERE id = %s", damaged.channel_id)
    (found,) = patient.found("key", "credentials")
    assert (found.severity, found.code) == (E, "credential_closed")
    assert "page 2, page 3" in found.what
    assert "s3cret" not in found.what + found.remedy


def test_a_key_that_others_may_read(patient: Patient) -> None:
    seal(patient, patient.lane())
    patient.settings.key_file.chmod(0o644)
    assert patient.ills("key", "credentials") == [(E, "key_unusable")]


def test_a_copied_deployment_opens_nothing(patient: Patient) -> None:
    seal(patient, patient.lane())
    patient.plant("UPDATE deployment SET id = gen_random_uuid()")
    assert patient.codes("key", "credentials") == ["key_of_another"]


def test_a_platform_that_this_release_lacks(patient: Patient) -> None:
    patient.lane("myspace")
    assert patient.ills("platforms") == [(W, "platform_unknown")]


@dataclass
class Asked(Fake):
    """A platform that answers what it is told to."""

    answer: Callable[[], ChannelHealth] = lambda: ChannelHealth(usable=True, detail="fine")

    def check(self, channel: Channel) -> ChannelHealth:  # noqa: ARG002 - as the port has it
        return self.answer()


def health(*, usable: bool = True, days: float | None = None) -> Callable[[], ChannelHealth]:
    ends = None if days is None else datetime.now(UTC) + timedelta(days=days)
    return lambda: ChannelHealth(usable=usable, detail="The token is revoked.", expires_at=ends)


def broken() -> ChannelHealth:
    raise ConnectionError


@pytest.mark.parametrize(
    ("answer", "expected", "is_kept"),
    [
        (health(), [], False),
        (health(days=60), [], True),
        (health(days=3), [(W, "access_ends")], True),
        (health(days=-3), [(W, "access_ends")], True),
        (health(usable=False), [(W, "access_refused")], False),
        (broken, [(W, "access_unasked")], False),
    ],
)
def test_what_platforms_say_when_they_are_asked(
    patient: Patient,
    answer: Callable[[], ChannelHealth],
    expected: list[tuple[Severity, str]],
    *,
    is_kept: bool,
) -> None:
    lane = patient.lane("fake")
    seal(patient, lane)
    platform = Asked()
    platform.answer = answer
    asking = replace(patient, registry=Registry([platform]))
    assert asking.ills("access") == expected
    ends = patient.ground.one(
        "SELECT access_ends_at IS NOT NULL FROM channels WHERE id = %s", lane.channel_id
    )
    assert ends is is_kept
    assert patient.codes("access") == []  # nobody is asked unless told to
    patient.plant(PAUSE, lane.channel_id)
    assert asking.codes("access") == []
