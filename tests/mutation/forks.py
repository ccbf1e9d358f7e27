"""A process that has imported what every test imports, and forks for each run of pytest.

It knows nothing of the product: a fork reads the tree as it is at that moment. Orders come as
lines of JSON (``args``, ``env``, ``out``, ``seconds``), answers go the same way (``code``, None
where the time was up). Given tests on its command line it loads those, and the product with
them; an order then says what to execute in which ``module`` of it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
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

_QUIET = ("-W", "ignore:Module already imported")


def serve() -> None:
    """Answer orders until there are no more."""
    for name in OFTEN_IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not {"publisher", "reconciler", "tests.postgres"} & set(sys.modules)
    if sys.argv[1:]:
        _load(*sys.argv[1:])
    gc.freeze()  # what is there now is in no fork's way when it looks for garbage
    for line in sys.stdin:
        order = json.loads(line)
        code, cpu = _run(order)
        sys.stdout.write(json.dumps({"code": code, "cpu": cpu}) + "\n")
        sys.stdout.flush()


def _run(order: dict[str, Any]) -> tuple[int | None, float]:
    child = os.fork()
    if child == 0:
        _be_pytest(order)
    until = time.monotonic() + order["seconds"]
    code: int | None = None
    done, status, used = os.wait4(child, os.WNOHANG)
    while not done and time.monotonic() < until:
        time.sleep(0.01)
        done, status, used = os.wait4(child, os.WNOHANG)
    if done:
        code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # it leads a group of its own
    if not done:
        _, _, used = os.wait4(child, 0)
    return code, round(used.ru_utime + used.ru_stime, 2)


def _load(first: str, *tests: str) -> None:
    """Import these tests, and run the first here: what is slow at first is quick in every fork."""
    import pytest  # noqa: PLC0415 - it is there already

    said = io.StringIO()
    args = ["-qq", "-p", "no:cacheprovider", "-p", "tests.mutation.warm", *_QUIET]
    with contextlib.redirect_stdout(said):
        codes = [pytest.main([*args, first]), pytest.main([*args, "--collect-only", *tests])]
    if any(codes):
        sys.stderr.write(said.getvalue())
        sys.exit(1)


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
        for statement in order.get("statements", ()):
            exec(statement, sys.modules[order["module"]].__dict__)
        code = int(pytest.main([*_QUIET, *order["args"]]))
    except BaseException:  # noqa: BLE001 - whoever reads the run's words must see it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
