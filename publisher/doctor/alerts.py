"""Whether those who are to be told can be told, and whether the monitor's port answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

from publisher.doctor.finding import Finding, error, note, warning
from publisher.doctor.ward import Ward
from publisher.engine import queries
from publisher.engine.errors import NotFound
from publisher.engine.queries import ChannelHealth
from publisher.words import _

_TAKE_ALERTS = frozenset({"mail", "webhook"})


def addressees(ward: Ward) -> Iterator[Finding]:
    """Whether those who are to be told can be told: their channels there, fit and open."""
    settings = ward.settings
    if not settings.alert_channels:
        yield note(
            "alerts_unset",
            _("Nobody is told when a person is needed; it is only logged."),
            _("Set PUBLISHER_ALERT_CHANNELS to a mail or webhook channel."),
        )
        return
    with ward.reading() as conn:
        every = queries.channel_health(conn)
    for wanted in settings.alert_channels:
        found = next((at for at in every if _is(at, wanted)), None)
        if found is None:
            yield error(
                "alert_channel_missing",
                _("Alerts are to go to {name}, and there is no such channel.").format(name=wanted),
                _("Correct PUBLISHER_ALERT_CHANNELS, or add it: publisher channels add"),
            )
            continue
        yield from _usable(ward, found)


def _is(at: ChannelHealth, wanted: str) -> bool:
    return wanted == str(at.channel.id) or wanted.lower() == at.channel.name.lower()


def _usable(ward: Ward, at: ChannelHealth) -> Iterator[Finding]:
    name, queue = at.channel.name, _queue(ward, at.channel.platform)
    if queue not in _TAKE_ALERTS:
        yield error(
            "alert_channel_unfit",
            _("Alerts are to go to {name}, which is neither mail nor webhook.").format(name=name),
            _("Name a mail or webhook channel in PUBLISHER_ALERT_CHANNELS."),
        )
        return
    if queue == "mail" and not ward.settings.alert_to:
        yield error(
            "alert_to_nobody",
            _("Alerts are to go out by {name}, and to no address.").format(name=name),
            _("Set PUBLISHER_ALERT_TO."),
        )
    if queue not in ward.settings.queues:
        yield warning(
            "alert_queue_unserved",
            _("Alerts wait in the queue {queue}, which PUBLISHER_QUEUES leaves out.").format(
                queue=queue
            ),
            _("Let some worker serve it."),
        )
    if not at.is_open:
        yield error(
            "alert_channel_closed",
            _("Alerts are to go to {name}, which takes nothing now.").format(name=name),
            _("Run: publisher channels reconnect {id}, or resume {id}").format(id=at.channel.id),
        )


def _queue(ward: Ward, platform: str) -> str | None:
    try:
        return ward.registry.adapter(platform).capabilities("").queue
    except NotFound:
        return None


def metrics(ward: Ward) -> Iterator[Finding]:
    """Whether the port for metrics answers where a worker runs, and is free where none does."""
    settings = ward.settings
    if settings.metrics_port is None:
        return
    place = (settings.metrics_host, settings.metrics_port)
    named = {"host": place[0], "port": place[1]}
    with ward.reading() as conn:
        rows = queries.worker_rows(conn)
    here, silence = socket.gethostname(), settings.rescue_after_seconds
    works = any(
        row.host == here and (row.now - row.seen_at).total_seconds() < silence for row in rows
    )
    answers = _answers(place)
    if works and not answers:
        yield warning(
            "metrics_silent",
            _("A worker runs here, and nothing answers on {host}:{port}.").format(**named),
            _("Give workers and monitor the same PUBLISHER_METRICS_HOST and _PORT."),
        )
    elif answers and not works:
        yield note(
            "metrics_port_taken",
            _("Something answers on {host}:{port}, and no worker runs here.").format(**named),
            _("See that it is the reconciler; else choose another PUBLISHER_METRICS_PORT."),
        )


def _answers(place: tuple[str, int]) -> bool:
    try:
        with closing(socket.create_connection(place, timeout=2)):
            return True
    except OSError:
        return False
