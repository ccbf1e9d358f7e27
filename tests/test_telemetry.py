"""Logs: one line per event, and no secret on any of them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from pydantic import SecretStr

from publisher import telemetry
from publisher.config import Settings
from publisher.telemetry import REDACTED, scrub

CANARY = "EAAcanarycanarycanary0123456789"


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(level: str = "info", **fields: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    stream = io.StringIO()
    telemetry.configure(Settings(log_level=level, log_format="json"), stream=stream)
    log = structlog.get_logger("test")
    log.debug("job.settled", **fields)
    log.info("jobs.settled", **fields)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_transition_is_at_debug_and_a_batch_at_info() -> None:
    assert [line["event"] for line in logged()] == ["jobs.settled"]
    assert [line["event"] for line in logged("debug")] == ["job.settled", "jobs.settled"]


@pytest.mark.parametrize(
    "fields",
    [
        {"access_token": CANARY},
        {"headers": {"Authorization": CANARY}},
        {"password": "canary"},
        {"detail": [{"client_secret": "canary"}]},
        {"key": SecretStr("canary")},
        {"url": f"https://graph.example/me?access_token={CANARY}&x=1"},
        {"error": f"said OAuth {CANARY}"},
        {"error": f"bare {CANARY} in a sentence"},
        {"address": "postgresql://user:canary@host/db"},
        {"sealed": b"canary"},
    ],
)
def test_a_secret_is_never_on_a_line(fields: dict[str, Any]) -> None:
    (line,) = logged(**fields)
    assert "canary" not in json.dumps(line)


def test_what_is_no_secret_stays() -> None:
    (line,) = logged(token="8b1d", url="https://user@host/x", text="Bearer of news", tries=2)
    assert (line["token"], line["url"], line["text"]) == (
        "8b1d",
        "https://user@host/x",
        "Bearer of news",
    )


def test_libraries_log_through_the_same_rules() -> None:
    stream = io.StringIO()
    telemetry.configure(Settings(log_format="json"), stream=stream)
    logging.getLogger("some.library").info("too quiet")
    logging.getLogger("some.library").warning("token %s", CANARY)
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert line["event"] == f"token {REDACTED}"
    assert line["level"] == "warning"


def test_scrub_keeps_the_rest() -> None:
    assert scrub(f"a=1&access_token={CANARY}&b=2") == f"a=1&access_token{REDACTED}&b=2"


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_traceback_holds_no_secret_and_no_values(log_format: str) -> None:
    stream = io.StringIO()
    telemetry.configure(Settings.model_validate({"log_format": log_format}), stream=stream)

    def break_with(token: str) -> None:
        message = f"access_token={token}"
        raise RuntimeError(message)

    try:
        break_with(CANARY)
    except RuntimeError:
        structlog.get_logger("test").exception("it.broke")
    assert "break_with" in stream.getvalue()
    assert CANARY not in stream.getvalue()
