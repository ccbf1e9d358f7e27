"""Settings: defaults that fit one another, and refusals that name what to change."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest
from pydantic import ValidationError

from publisher.config import Settings, load


def test_the_defaults_fit_one_another() -> None:
    settings = Settings()
    assert settings.publish_lease == settings.publish_timeout_seconds + settings.lease_seconds
    assert settings.home == Path(".publisher")
    assert settings.key_file == Path(".publisher/vault.key")
    assert settings.database_url is None


def test_every_setting_is_read_with_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBLISHER_QUEUES", "publish, mail,")
    monkeypatch.setenv("PUBLISHER_ALLOWED_NETWORKS", "127.0.0.0/8,10.1.0.0/16")
    monkeypatch.setenv("PUBLISHER_PUBLISH_LEASE_SECONDS", "400")
    settings = load()
    assert settings.queues == ("publish", "mail")
    assert settings.allowed_networks == (IPv4Network("127.0.0.0/8"), IPv4Network("10.1.0.0/16"))
    assert settings.publish_lease == 400


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"lease_seconds": 40}, "PUBLISHER_LEASE_DISTRUST_SECONDS < PUBLISHER_LEASE_SECONDS"),
        ({"rescue_after_seconds": 60}, "PUBLISHER_RESCUE_AFTER_SECONDS"),
        ({"publish_lease_seconds": 300}, "PUBLISHER_PUBLISH_LEASE_SECONDS"),
        ({"retry_first_seconds": 2000}, "PUBLISHER_RETRY_MAX_SECONDS"),
        ({"poll_seconds": 50}, "PUBLISHER_POLL_SECONDS"),
    ],
)
def test_durations_that_contradict_are_refused_by_name(
    changes: dict[str, float], named: str
) -> None:
    with pytest.raises(ValidationError, match=named):
        Settings(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"poll_seconds": 0},
        {"concurrency": 0},
        {"tries": 0},
        {"sandbox_port": 70_000},
        {"log_level": "loud"},
        {"settling_seconds": -1},
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings(**changes)


def test_secrets_do_not_show() -> None:
    settings = Settings(database_url="postgresql://u:hunter2@h/d", vault_key="hunter2")
    assert "hunter2" not in repr(settings)
