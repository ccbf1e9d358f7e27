"""Logs: one line per event on standard error, JSON for machines, readable for a person.

A batch of the worker is one line at info; a single job's transition is a line at debug. What
looks like a secret by its name or its shape never reaches a line.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, TextIO

import structlog
from pydantic import SecretStr

from publisher.config import Settings

REDACTED: Final = "[redacted]"
_SECRET_NAMES: Final = re.compile(
    r"(^|_)(access_?token|api_?key|authorization|cookie|credential|credentials|passwd|password"
    r"|private_?key|refresh_?token|sealed|secret|vault_key|bearer)(_|$)",
    re.IGNORECASE,
)
"""A job's ``token`` is a fence, not a secret: it is logged, so the word alone is not listed."""
_SECRET_SHAPES: Final = (
    re.compile(r"(?i)\b(access_token|appsecret_proof|client_secret|password)=[^&\s\"']+"),
    re.compile(r"(?i)\b(bearer|oauth)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"\bpb[a-z]_(?:[a-z0-9-]{1,40}_)?[0-9a-f]{64}"),  # our sessions, links, API tokens
    re.compile(r"\bEAA[A-Za-z0-9]{20,}"),  # what Meta's access tokens begin with
    re.compile(r"(?i)(://[^/\s:@]+):[^@\s/]+(?=@)"),
)


def configure(settings: Settings, *, stream: TextIO | None = None) -> None:
    """Send structlog and the standard library's loggers to ``stream`` (standard error) as set.

    ``log_format=auto`` is readable when the stream is a terminal and JSON otherwise.
    """
    out = stream or sys.stderr
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    readable = settings.log_format == "console" or (settings.log_format == "auto" and out.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        # Before the secrets are dropped, in both shapes: a traceback holds whatever it was told.
        structlog.processors.format_exc_info,
        drop_secrets,
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(
            colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        if readable
        else structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    _configure_standard_library(out, level, shared, renderer)


def drop_secrets(
    _logger: Any,  # noqa: ANN401 - structlog's own signature
    _method: str,
    event: MutableMapping[str, Any],
) -> MutableMapping[str, Any]:
    """Replace what is secret by its key's name or by its shape, at any depth."""
    for key, value in event.items():
        event[key] = _cleaned(key, value)
    return event


def _cleaned(key: str, value: object) -> object:
    if isinstance(value, SecretStr) or (value is not None and _SECRET_NAMES.search(key)):
        return REDACTED
    if isinstance(value, bytes):
        return f"[{len(value)} bytes]"
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {name: _cleaned(str(name), item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(key, item) for item in value]
    return value


def scrub(text: str) -> str:
    """Return ``text`` without what has the shape of an access token or a password in a URL."""
    for shape in _SECRET_SHAPES:
        text = shape.sub(lambda match: f"{(match.lastindex and match[1]) or ''}{REDACTED}", text)
    return text


def _configure_standard_library(
    out: TextIO,
    level: int,
    shared: list[structlog.typing.Processor],
    renderer: structlog.typing.Processor,
) -> None:
    """Libraries log through ``logging``: the same stream, shape and rules, from warning up."""
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))
