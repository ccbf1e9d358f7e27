"""Alerts and metrics as an operator has them: real processes, a real relay, a real receiver."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy
from prometheus_client.parser import text_string_to_metric_families

from publisher.engine.tally import Count, Tally
from publisher.metrics import Metrics
from publisher.sandbox.process import SandboxProcess
from tests.adapters import mail_relay
from tests.adapters.liar import Asked, Liar, Said
from tests.adapters.test_webhook import is_signed
from tests.cli.conftest import Terminal
from tests.transport.peer import make_certificate

SECRET = "a secret of the receivers own".replace(" ", "-")
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def scrape(port: int) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


def eventually(holds: Callable[[], Any], within: float = 40.0) -> Any:  # noqa: ANN401
    until = time.monotonic() + within
    while not (found := holds()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.1)
    return found


@contextmanager
def reconciling(terminal: Terminal, **more: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler"],
        env=terminal.environment | more,
        cwd=terminal.folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said


def by_kind(terminal: Terminal) -> dict[str, str]:
    return {job["kind"]: job["state"] for job in terminal.listed("jobs", "list")}


def test_a_blocked_page_is_told_of_by_mail_and_webhook_and_measured(
    terminal: Terminal, sandbox: SandboxProcess, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    (tmp_path / "ca.pem").write_text(certificate.text)
    ports = free_port(), free_port()
    answers = iter([500, 500])
    events: list[str] = []

    def receive(asked: Asked) -> Said:
        assert is_signed(asked, SECRET)
        events.append(json.loads(asked.body)["id"])
        return Said(b"", next(answers, 204))

    settings = {
        "PUBLISHER_ALERT_CHANNELS": "hooks, Alarms",
        "PUBLISHER_ALERT_TO": "ops@example.org",
        "PUBLISHER_ALERT_GATHER_SECONDS": "0",
        "PUBLISHER_LOOK_FIRST_SECONDS": "0.2",
        "PUBLISHER_LOOK_MAX_SECONDS": "0.4",
        "PUBLISHER_MAIL_CA_FILE": str(tmp_path / "ca.pem"),
        "PUBLISHER_METRICS_PORT": str(ports[0]),
    }
    terminal = replace(terminal, environment=terminal.environment | settings)
    page = sandbox.control.add_pages(1)[0]
    add = ("channels", "add")
    with Liar(receive) as receiver, mail_relay.relay(certificate.server) as relay:
        relay.box.at_data = mail_relay.drop_the_250
        terminal.done(
            *(*add, "facebook_pages", "--name", "Page A", "--remote-id", page["id"]),
            *("--base-url", sandbox.url, "--token-env", "T"),
            T="not-this-pages-token",
        )
        terminal.done(
            *(*add, "webhook", "--name", "Hooks", "--remote-id", "hooks"),
            *("--base-url", f"{receiver.url}/in", "--token-env", "T"),
            T=SECRET,
        )
        terminal.done(
            *(*add, "mail", "--name", "Alarms", "--remote-id", "alarms@publisher.example"),
            *("--token-env", "T"),
            T=relay.credential(),
        )
        terminal.import_posts("one,Page A,Xin chào,now")
        with (
            terminal.working(),
            reconciling(terminal, PUBLISHER_METRICS_PORT=str(ports[1])),
        ):
            eventually(lambda: by_kind(terminal).get("webhook") == "published")
            eventually(lambda: by_kind(terminal).get("mail") == "unknown")
            asks = {"age": "60", "needs_a_person": "true"}
            eventually(lambda: value(scrape(ports[1]), "publisher_unknowns", **asks))
            seen = scrape(ports[0])
        # An ambiguous end is delivered at most once, a safe one until it is confirmed.
        (mail,) = relay.box.parsed
    assert "Needs reconnecting" in mail["Subject"]
    assert 'Facebook "Page A"' in mail["Subject"]
    assert "1 post waits and was not sent" in mail.get_content()
    assert len(events) == 3
    assert len(set(events)) == 1

    assert value(seen, "publisher_database_up") == 1
    assert value(seen, "channels_blocked", reason="needs_reconnecting") == 1
    assert value(seen, "publisher_workers") == 1
    assert value(seen, "publisher_workers_silent") == 0
    unauthorized = {"outcome": "unauthorized", "platform": "facebook_pages"}
    assert value(seen, "publisher_outcomes_total", reason="needs_reconnecting", **unauthorized)
    assert value(
        seen, "publisher_outcomes_total", outcome="published", platform="webhook", reason=""
    )
    assert value(seen, "publisher_lateness_seconds_count", platform="webhook") == 1
    assert value(seen, "publisher_lateness_seconds_bucket", platform="webhook", le="+Inf") == 1


def test_a_port_that_is_taken_is_refused_with_what_to_do(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = terminal.run("worker", PUBLISHER_METRICS_PORT=str(taken.getsockname()[1]))
    assert refused.returncode == 2
    assert "PUBLISHER_METRICS_PORT" in refused.stderr


def test_a_database_that_does_not_answer_costs_its_own_part_alone() -> None:
    tally = Tally()
    tally.count(Count.LOOKS, "Found")
    nowhere = sqlalchemy.create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")
    metrics = Metrics(tally, nowhere, timedelta(seconds=1))
    with metrics.serving("127.0.0.1", free_port()) as port:
        samples = scrape(port)
    assert value(samples, "publisher_database_up") == 0
    assert value(samples, "publisher_looks_total", found="Found") == 1
