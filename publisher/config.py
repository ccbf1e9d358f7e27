"""Settings: every name is an environment variable with the prefix ``PUBLISHER_``.

Durations are plain seconds, so that a test can make a lease last two of them. Relations between
durations that the protocol relies on are checked when the settings are read, not when they bite.
"""

from __future__ import annotations

from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, FilePath, SecretStr, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

Seconds = Annotated[float, Field(gt=0)]


def _split(value: object) -> object:
    """Turn ``a, b`` into a tuple; an environment variable has no other way to hold a list."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = "needs the name of a zone, such as Asia/Ho_Chi_Minh"
        raise ValueError(message) from None
    return name


class Settings(BaseSettings):
    """Everything that can be set, with the default a single machine wants."""

    model_config = SettingsConfigDict(env_prefix="PUBLISHER_", extra="ignore", frozen=True)

    # Where things are.
    home: Path = Path(".publisher")
    """Embedded database, spool, sealing key, sandbox log. Made with mode 0700."""
    database_url: SecretStr | None = None
    """``postgresql://…`` of PostgreSQL 15 or newer; unset: an embedded server under ``home``."""
    direct_url: SecretStr | None = None
    """Past the pooler, for LISTEN; unset: ``database_url``."""
    prepare: Literal["on", "off"] = "on"
    """``off`` behind a transaction pooler that cannot keep prepared statements."""
    vault_key: SecretStr | None = None
    """Base64 of 32 bytes that seal channel credentials; unset: ``vault_key_file``."""
    vault_key_file: Path | None = None
    """Unset: ``home/vault.key``, made with mode 0600 when it is not there."""
    workspace: str = ""
    """The slug of the workspace that commands work in; empty: whichever there is, or all."""
    witness: str | None = None
    """What the database is held against: a path, ``file:``, ``s3:`` or ``configmap:``; see
    ``publisher.witness``. Unset: ``home/witness``, which is right for one machine."""
    witness_step: Annotated[int, Field(ge=2, le=86_400)] = 60
    """Seconds of work that go by between two writes of the witness."""
    media: str | None = None
    """Where pictures and videos are kept: a folder or ``s3:``; see ``publisher.editorial.media``.
    Unset: in the database, which every worker reads and every backup holds."""
    graph_url: str = "https://graph.facebook.com"
    """Where Graph API calls go for a channel that names no address of its own."""
    graph_application: str | None = None
    """Id of our Meta app: on a Page it tells our posts from others' with the same text."""
    proxy_url: SecretStr | None = None
    """Outgoing HTTP proxy. The usual proxy variables are not read."""
    allowed_networks: Annotated[
        tuple[IPv4Network | IPv6Network, ...], NoDecode, BeforeValidator(_split)
    ] = ()
    """Private networks that addresses given by page, API or file may lie in."""

    mail_ca_file: FilePath | None = None
    """Certificates, in PEM, that mail relays may show beside those of the public authorities."""

    # Signing in by another party; all three or none.
    oidc_issuer: str | None = None
    """An OpenID provider, as its own document names it: ``https://id.example.org``."""
    oidc_client_id: str | None = None
    oidc_client_secret: SecretStr | None = None

    # The worker.
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 32
    """Hands: sends and steps that one worker has under way at once."""
    queues: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = (
        "publish",
        "mail",
        "webhook",
    )
    poll_seconds: Seconds = 1.0
    lease_seconds: Seconds = 60.0
    lease_distrust_seconds: Seconds = 50.0
    """After this long without a renewal a worker no longer believes its own lease."""
    rescue_after_seconds: Seconds = 75.0
    """A lease is taken away this long after it was last given."""
    publish_timeout_seconds: Seconds = 300.0
    """Whole budget of one publish call; one platform was measured at 222 s."""
    publish_lease_seconds: Seconds | None = None
    """Unset: publish timeout + lease."""
    tcp_user_timeout_seconds: Seconds = 30.0
    settling_seconds: Annotated[float, Field(ge=0)] = 30.0
    """What a platform needs until a post it took is visible to a look."""
    drain_seconds: Annotated[float, Field(ge=0)] = 30.0
    """How long a worker that was told to stop waits for sends under way."""

    # Retry.
    retry_first_seconds: Seconds = 30.0
    retry_max_seconds: Seconds = 1800.0
    tries: Annotated[int, Field(ge=1, le=100)] = 5
    deaths: Annotated[int, Field(ge=1, le=100)] = 3
    """Workers a job may take down with it before it is failed as poison."""
    useful_for_seconds: Seconds = 86_400.0
    """A post is not sent later than this after it was due, unless it says otherwise."""

    # The reconciler.
    look_first_seconds: Seconds = 30.0
    """Pause after the first look at a post that may be live; it doubles up to ``look_max``."""
    look_max_seconds: Seconds = 900.0
    look_limit: Annotated[int, Field(ge=1, le=1000)] = 8
    """Looks that decided nothing before a person is asked."""

    # Alerts.
    alert_channels: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = ()
    """Mail and webhook channels, by name or id, that are told when a person is needed."""
    alert_to: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = ()
    """Addresses that mail channels among them write to."""
    alert_zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    """The zone of the times in an alert, such as ``Asia/Ho_Chi_Minh``."""
    alert_handover_hour: Annotated[int, Field(ge=0, le=23)] = 8
    """When the next person comes on duty, in that zone: what can wait until then does."""
    alert_gather_seconds: Annotated[float, Field(ge=0)] = 10.0
    """How long an alert waits for others like it, to be one message with them."""
    alert_pause_seconds: Annotated[float, Field(ge=0)] = 900.0
    """Between two messages about the same kind of thing on one channel."""
    alert_rate: Annotated[int, Field(ge=1)] = 10
    """So many posts in one message are worth waking somebody for."""
    public_url: str | None = None
    """Where people reach the pages, for the links in alerts; unset: alerts name the command."""

    # Metrics.
    metrics_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Serve Prometheus metrics here; unset: none. ``publisher up`` counts up from it."""
    metrics_host: str = "127.0.0.1"

    # Sandbox and logs.
    sandbox_port: Annotated[int, Field(ge=0, le=65535)] = 8801
    sandbox_log: Path | None = None
    """The sandbox page's own record; unset: ``home/sandbox``."""
    log_format: Literal["auto", "json", "console"] = "auto"
    """``auto``: readable on a terminal, JSON otherwise."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @cached_property
    def publish_lease(self) -> float:
        """Seconds a worker holds a job whose send it has begun."""
        if self.publish_lease_seconds is not None:
            return self.publish_lease_seconds
        return self.publish_timeout_seconds + self.lease_seconds

    @cached_property
    def horizon(self) -> float:
        """Seconds until what an ended process wrote has landed or never will."""
        return self.tcp_user_timeout_seconds + self.settling_seconds

    @cached_property
    def key_file(self) -> Path:
        """Where the sealing key lies when it is not given as a variable."""
        return self.vault_key_file or self.home / "vault.key"

    @model_validator(mode="after")
    def _oidc_is_whole(self) -> Self:
        given = (self.oidc_issuer, self.oidc_client_id, self.oidc_client_secret)
        if any(given) and not all(given):
            message = (
                "PUBLISHER_OIDC_ISSUER, PUBLISHER_OIDC_CLIENT_ID and PUBLISHER_OIDC_CLIENT_SECRET"
                " go together. Set all three, or none."
            )
            raise ValueError(message)
        if self.oidc_issuer and not _is_read_by_nobody(self.oidc_issuer):
            message = "PUBLISHER_OIDC_ISSUER needs an address that begins with https://"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _relations_hold(self) -> Self:
        _require(
            self.lease_distrust_seconds < self.lease_seconds < self.rescue_after_seconds,
            "PUBLISHER_LEASE_DISTRUST_SECONDS < PUBLISHER_LEASE_SECONDS"
            " < PUBLISHER_RESCUE_AFTER_SECONDS",
            f"{self.lease_distrust_seconds:g}, {self.lease_seconds:g}"
            f" and {self.rescue_after_seconds:g}",
        )
        _require(
            self.publish_timeout_seconds < self.publish_lease,
            "PUBLISHER_PUBLISH_TIMEOUT_SECONDS < PUBLISHER_PUBLISH_LEASE_SECONDS",
            f"{self.publish_timeout_seconds:g} and {self.publish_lease:g}",
        )
        _require(
            self.retry_first_seconds <= self.retry_max_seconds,
            "PUBLISHER_RETRY_FIRST_SECONDS <= PUBLISHER_RETRY_MAX_SECONDS",
            f"{self.retry_first_seconds:g} and {self.retry_max_seconds:g}",
        )
        _require(
            self.look_first_seconds <= self.look_max_seconds,
            "PUBLISHER_LOOK_FIRST_SECONDS <= PUBLISHER_LOOK_MAX_SECONDS",
            f"{self.look_first_seconds:g} and {self.look_max_seconds:g}",
        )
        _require(
            self.poll_seconds < self.lease_distrust_seconds,
            "PUBLISHER_POLL_SECONDS < PUBLISHER_LEASE_DISTRUST_SECONDS",
            f"{self.poll_seconds:g} and {self.lease_distrust_seconds:g}",
        )
        return self


def _is_read_by_nobody(url: str) -> bool:
    parts = urlsplit(url)
    here = ("127.0.0.1", "::1", "localhost")
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in here)
    )


def _require(holds: bool, relation: str, values: str) -> None:
    if not holds:
        message = f"needs {relation}; they are {values}. Change one of them."
        raise ValueError(message)


def load() -> Settings:
    """Read the settings from the environment.

    Raises ``pydantic.ValidationError``, whose messages name the variable and what is wrong.
    """
    return Settings()
