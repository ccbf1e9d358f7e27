"""A pytest plugin for runs on a mutant: a server that is running already, and who failed at what.

``MUTATION_SERVER``: the folder of its socket. ``MUTATION_TEMPLATE``: the migrated database there,
made when it is missing. ``MUTATION_TOLD``: the file that is told what failed. ``MUTATION_PIECES``:
a file of SQL pieces, of which the told file then says which test ran which, and in what time.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest

INVALID = 77
"""How a run ends on a database that cannot even be made."""

_failed: list[dict[str, str]] = []
_ran: dict[str, dict[str, Any]] = {}
_now: set[str] = set()


def _use_the_server() -> None:
    """Hand out the server that runs. As this is imported: a conftest is before any hook."""
    from tests import postgres  # noqa: PLC0415 - of the tree that the run is made in

    @contextmanager
    def running(name: str) -> Iterator[postgres.Postgres]:
        del name
        yield _server(postgres)

    postgres.running = running


if "MUTATION_SERVER" in os.environ:
    _use_the_server()


def pytest_configure() -> None:
    """Make the template where it is missing; listen, where that is asked for."""
    if "MUTATION_SERVER" in os.environ:
        _make_the_template()
    if "MUTATION_PIECES" in os.environ:
        _listen(json.loads(Path(os.environ["MUTATION_PIECES"]).read_text()))


def _make_the_template() -> None:
    from tests import postgres  # noqa: PLC0415 - as above

    postgres.TEMPLATE = os.environ["MUTATION_TEMPLATE"]
    try:
        _server(postgres)._ensure_template()
    except Exception as error:  # noqa: BLE001 - whatever it is, the schema cannot be made
        _failed.append({"test": "the migrations", "why": f"{type(error).__name__}: {error}"})
        _tell()
        pytest.exit("the database cannot be made", returncode=INVALID)


def _server(postgres: ModuleType) -> Any:  # noqa: ANN401 - of that module
    """The server that runs; it knows whether it has the template."""
    server = postgres.Postgres("embedded", Path(os.environ["MUTATION_SERVER"]))
    with server.superuser() as conn:
        query = "SELECT FROM pg_database WHERE datname = %s"
        server._has_template = conn.execute(query, [postgres.TEMPLATE]).rowcount > 0
    return server


def _listen(pieces: dict[str, str]) -> None:
    """Note which pieces of SQL each statement holds; a piece with gaps by what is between them."""
    parts = {
        name: [part for part in re.split(r"\{[^{}]*\}", text) if part.strip()]
        for name, text in pieces.items()
    }
    known: dict[str, frozenset[str]] = {}
    execute = psycopg.Cursor.execute

    def noted(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        text = (
            query if isinstance(query, str) else query.decode() if isinstance(query, bytes) else ""
        )
        if text not in known:
            known[text] = frozenset(
                name for name, each in parts.items() if each and all(p in text for p in each)
            )
        _now.update(known[text])
        return execute(self, query, *args, **kwargs)

    psycopg.Cursor.execute = noted  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Time each test, with what it needs to be set up."""
    _now.clear()
    began = time.monotonic()
    try:
        return (yield)
    finally:
        _ran[item.nodeid] = {"seconds": round(time.monotonic() - began, 3), "pieces": sorted(_now)}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what failed, and why in a line."""
    if report.failed:
        _failed.append({"test": report.nodeid, "why": _why(report)})


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A module that cannot be imported any more has noticed, too."""
    if report.failed:
        _failed.append({"test": f"{report.nodeid} (import)", "why": _why(report)})


def _why(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return str(text)[-500:] if crash is None else str(text)[:500]


def pytest_sessionfinish() -> None:
    """Write it down."""
    _tell()


def _tell() -> None:
    told = os.environ.get("MUTATION_TOLD")
    if told:
        ran = _ran if "MUTATION_PIECES" in os.environ else {}
        Path(told).write_text(json.dumps({"failed": _failed, "ran": ran}))
