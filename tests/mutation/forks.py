"""A process that has imported what every test imports, and forks for each run of pytest.

It knows nothing of the product: a fork reads the tree as it is at that moment. Orders come as
lines of JSON (``args``, ``env``, ``out``, ``seconds``), answers go the same way (``code``, None
where the time was up).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
from typing import Any

OFTEN_IMPORTED = (
    "pytest", "_pytest.assertion.rewrite", "hypothesis", "hypothesis.strategies", "psycopg",
    "psycopg.types.json", "sqlalchemy", "sqlalchemy.dialects.postgresql", "pydantic",
    "pydantic_settings", "structlog", "httpx", "httpcore", "cryptography.fernet", "typer",
    "rich.console", "regex", "prometheus_client", "alembic.command", "tenacity", "aiosmtpd",
)  # fmt: skip


def serve() -> None:
    """Answer orders until there are no more."""
    for name in OFTEN_IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not {"publisher", "reconciler", "tests.postgres"} & set(sys.modules)
    for line in sys.stdin:
        order = json.loads(line)
        sys.stdout.write(json.dumps({"code": _run(order)}) + "\n")
        sys.stdout.flush()


def _run(order: dict[str, Any]) -> int | None:
    child = os.fork()
    if child == 0:
        _be_pytest(order)
    until = time.monotonic() + order["seconds"]
    code: int | None = None
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # it leads a group of its own
    if not done:
        os.waitpid(child, 0)
    return code


def _be_pytest(order: dict[str, Any]) -> None:
    os.setsid()
    out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.update(order["env"])
    import pytest  # noqa: PLC0415 - it is there already

    code = 70
    try:
        code = int(pytest.main(order["args"]))
    except BaseException:  # noqa: BLE001 - whoever reads the run's words must see it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
