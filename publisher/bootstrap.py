"""The composition root: the one place that knows which parts there are and hands them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy
from pydantic import ValidationError

from publisher import config, telemetry, witness
from publisher.adapters.bluesky import Bluesky
from publisher.adapters.facebook_pages import FacebookPages
from publisher.adapters.mail import Mail
from publisher.adapters.mastodon import Mastodon
from publisher.adapters.telegram import Telegram
from publisher.adapters.webhook import Webhook
from publisher.config import Settings
from publisher.db import preflight
from publisher.db.connect import Database
from publisher.db.errors import DatabaseError
from publisher.db.roles import Role
from publisher.editorial import deployment, media
from publisher.engine.adapter import MediaStore
from publisher.engine.alert import Wording
from publisher.engine.alerts import Alerts
from publisher.engine.audit.hourly import Hourly
from publisher.engine.errors import PublisherError
from publisher.engine.guard import Guard
from publisher.engine.job import Channel
from publisher.engine.registry import Registry
from publisher.engine.removal import Removing
from publisher.engine.rescue import Rescue
from publisher.engine.retry import Policy
from publisher.engine.tally import Tally
from publisher.engine.worker import Timing, Worker
from publisher.mailer import Mailer
from publisher.metrics import Metrics
from publisher.transport import Transport
from publisher.vault import Vault, VaultError

REFUSALS = (PublisherError, DatabaseError, ValidationError)
"""What keeps a process from starting; each says what to do."""


class Unfit(PublisherError):
    """The database is none a worker may write to; the sentence says why and what to do."""

    code = "database-unfit"


@dataclass(frozen=True, slots=True)
class App:
    """What commands and workers work with, on one open database."""

    settings: Settings
    database: Database
    vault: Vault
    registry: Registry
    library: media.Library
    fetcher: media.Fetcher
    tally: Tally = field(default_factory=Tally)


@contextmanager
def open_app(settings: Settings, database: Database) -> Iterator[App]:
    """Put everything together around an open ``database``.

    Raises ``CloneRefused`` on a copy without its key, ``VaultError``, ``MediaStorageUnusable``,
    ``MediaExtraMissing``, ``MediaUnreachable``.
    """
    with database.engine.begin() as conn:
        vault = deployment.own_vault(conn, settings)
    transport = Transport(settings)
    try:
        library = media.Library(database.engine, media.storage(settings))
        adapters = registry(settings, transport, opener(vault), library)
        yield App(settings, database, vault, adapters, library, media.Fetcher(transport))
    finally:
        transport.close()


def worker(app: App) -> Worker:
    """A worker on the open database, which was opened in the engine's role."""
    settings, database = app.settings, app.database

    def listen() -> psycopg.Connection[Any]:
        try:
            return database.connect_driver(direct=True, application_name="publisher listen")
        except DatabaseError as error:
            raise Unfit(str(error)) from error

    return Worker(
        connect=connector(database),
        registry=app.registry,
        spool_folder=spool_folder(settings),
        policy=policy(settings),
        timing=Timing(
            lease=settings.lease_seconds,
            distrust=settings.lease_distrust_seconds,
            rescue_after=settings.rescue_after_seconds,
            publish_timeout=settings.publish_timeout_seconds,
            publish_lease=settings.publish_lease,
            poll=settings.poll_seconds,
            drain=settings.drain_seconds,
        ),
        queues=settings.queues,
        concurrency=settings.concurrency,
        listen=listen,
        alarm=alerts(settings, app.registry),
        tally=app.tally,
        guard=guard(settings, app.registry, "worker"),
    )


def guard(settings: Settings, registry: Registry, who: str) -> Guard:
    """What holds the database against its witness, for ``who``. Raises ``WitnessUnusable``."""
    return Guard(
        store=witness.store(settings),
        step=settings.witness_step,
        absent_after=settings.publish_lease + settings.horizon,
        who=who,
        alarm=alerts(settings, registry),
    )


def alerts(settings: Settings, registry: Registry) -> Alerts:
    """Who is told when a person is needed, and in which words."""
    return Alerts(
        registry=registry,
        channels=settings.alert_channels,
        to=settings.alert_to,
        wording=Wording(
            zone=settings.alert_zone,
            handover_hour=settings.alert_handover_hour,
            rate=settings.alert_rate,
            public_url=settings.public_url,
        ),
        gather=settings.alert_gather_seconds,
        pause=settings.alert_pause_seconds,
        silent_for=timedelta(seconds=settings.rescue_after_seconds),
    )


@contextmanager
def measured(app: App) -> Iterator[None]:
    """Serve metrics while the block lasts, where ``PUBLISHER_METRICS_PORT`` is set.

    Raises ``MetricsRefused`` for a port that is taken.
    """
    settings = app.settings
    if settings.metrics_port is None:
        yield
        return
    metrics = Metrics(
        tally=app.tally,
        engine=app.database.engine,
        silent_for=timedelta(seconds=settings.rescue_after_seconds),
    )
    with metrics.serving(settings.metrics_host, settings.metrics_port):
        yield


def audited(app: App) -> AbstractContextManager[None]:
    """Audit once an hour, whichever process of the deployment comes first, while a block lasts."""
    return Hourly(
        connect=connector(app.database),
        alarm=alerts(app.settings, app.registry),
        alerted=bool(app.settings.alert_channels),
        tally=app.tally,
    ).running()


def connector(database: Database) -> Callable[[], psycopg.Connection[Any]]:
    """What opens checked connections to ``database``.

    Checked again on each new connection: behind an address that moves there may now be another
    server, and nobody may write to one that forgets.
    """

    def connect() -> psycopg.Connection[Any]:
        try:
            with database.engine.connect() as conn:
                preflight.refuse_unless_safe(conn)
            return database.connect_driver()
        except DatabaseError as error:
            raise Unfit(str(error)) from error
        except sqlalchemy.exc.DBAPIError as error:
            raise psycopg.OperationalError(str(error.orig)) from error

    return connect


@dataclass(frozen=True, slots=True)
class Looking:
    """What the reconciler is handed: it fetches neither its settings nor its database itself.

    ``first``, ``longest``, ``poll`` are seconds.
    """

    connect: Callable[[], psycopg.Connection[Any]]
    registry: Registry
    rescue: Rescue
    alerts: Alerts
    tally: Tally
    first: float
    longest: float
    limit: int
    horizon: timedelta
    poll: float


@contextmanager
def looking() -> Iterator[Looking]:
    """Read the settings, open the database as the engine, and put the reconciler's parts together.

    Raises ``PublisherError`` and ``DatabaseError`` with a sentence that says what to do.
    """
    settings = config.load()
    telemetry.configure(settings)
    with (
        Database.open(settings, Role.ENGINE, application_name="reconciler") as database,
        open_app(settings, database) as app,
        measured(app),
    ):
        told = alerts(settings, app.registry)
        yield Looking(
            connect=connector(database),
            registry=app.registry,
            rescue=Rescue(
                folder=spool_folder(settings),
                policy=policy(settings),
                grace=settings.rescue_after_seconds - settings.lease_seconds,
                who="reconciler",
                alarm=told,
                tally=app.tally,
                absent_after=settings.publish_lease + settings.horizon,
            ),
            alerts=told,
            tally=app.tally,
            first=settings.look_first_seconds,
            longest=settings.look_max_seconds,
            limit=settings.look_limit,
            horizon=timedelta(seconds=settings.horizon),
            poll=settings.poll_seconds,
        )


def spool_folder(settings: Settings) -> Path:
    """Where worker runs of this machine keep their files."""
    return settings.home / "spool"


def policy(settings: Settings) -> Policy:
    """How often a job is tried, and how patiently."""
    return Policy(
        tries=settings.tries,
        first=settings.retry_first_seconds,
        longest=settings.retry_max_seconds,
        settling=settings.settling_seconds,
        deaths=settings.deaths,
    )


def registry(
    settings: Settings,
    transport: Transport,
    vault_open: Callable[[Channel], str],
    media: MediaStore,
) -> Registry:
    """Every adapter there is. A new platform is one file and one line here."""
    return Registry(
        Removing(adapter)
        for adapter in (
            FacebookPages(
                transport,
                vault_open,
                media,
                base_url=settings.graph_url,
                application=settings.graph_application,
            ),
            Bluesky(transport, vault_open, media),
            Mastodon(transport, vault_open, media),
            Telegram(transport, vault_open, media),
            Mail(Mailer(settings), vault_open),
            Webhook(transport, vault_open),
        )
    )


def describing_registry(settings: Settings) -> Registry:
    """Adapters that can say what they can do, and open no credential: no key is read or made."""

    def refuse(channel: Channel) -> str:
        message = f"The credential of {channel.name} is not opened here."
        raise VaultError(message)

    return registry(settings, Transport(settings), refuse, _NoMedia())


class _NoMedia:
    def read(self, sha256: str) -> Iterator[bytes]:
        raise KeyError(sha256)


def opener(vault: Vault) -> Callable[[Channel], str]:
    """A function that gives a channel's credential in clear, or raises ``VaultError``."""

    def open_channel(channel: Channel) -> str:
        if channel.sealed is None:
            message = f"{channel.name} has no credential. Reconnect it."
            raise VaultError(message)
        return vault.open(channel.sealed, channel_id=channel.id)

    return open_channel
