"""One sandbox for the folder, and the table of results at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from publisher.config import Settings
from publisher.sandbox.process import SandboxProcess
from publisher.transport import Transport

_MARKS = {"passed": "✔", "failed": "✕", "skipped": "–"}


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    """A platform of our own; each test has a page of its own on it."""
    log = tmp_path_factory.mktemp("sandbox")
    with SandboxProcess.start(log, fsync=False, triggers=False) as running:
        yield running


@pytest.fixture(scope="session")
def transport() -> Iterator[Transport]:
    """HTTP that may go to this machine for addresses that a channel names."""
    made = Transport(Settings.model_validate({"allowed_networks": ("127.0.0.0/8",)}))
    yield made
    made.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:  # noqa: ANN401 - pytest's own
    """Show which adapter passed which case of the conformance suite."""
    rows: dict[str, dict[str, str]] = {}
    for outcome, mark in _MARKS.items():
        for report in terminalreporter.stats.get(outcome, []):
            path, _, rest = getattr(report, "nodeid", "").partition("::")
            group, _, case = rest.partition("::")
            if "tests/adapters/" in path and group.startswith("TestConformance"):
                adapter = group.removeprefix("TestConformance")
                rows.setdefault(case.removeprefix("test_"), {})[adapter] = mark
    if not rows:
        return
    adapters = sorted({adapter for row in rows.values() for adapter in row})
    width = max(len(case) for case in rows)
    terminalreporter.section("adapter conformance")
    terminalreporter.write_line(" " * width + "  " + "  ".join(adapters))
    for case, row in rows.items():
        marks = "  ".join(row.get(adapter, " ").center(len(adapter)) for adapter in adapters)
        terminalreporter.write_line(f"{case.ljust(width)}  {marks}")
