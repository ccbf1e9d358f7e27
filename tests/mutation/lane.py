"""A private copy of the tree, a server, and one mutant after the other in it.

Nothing of the checkout is ever changed: the copy is of what is committed, in a temporary folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutation import swap
from tests.mutation.catalogue import ROOT, Mutant
from tests.mutation.warm import INVALID
from tests.postgres import Postgres, running

HELD = (
    "tests/engine",
    "tests/reconciler",
    "tests/db/test_rows.py",
    "tests/db/test_walls.py",
    "tests/editorial/posts",
    "tests/editorial/test_posting_times.py",
)
"""Tests that a process has loaded, with all that they import."""
_FIRST = "tests/engine/ledger/test_begin.py"
_FRESH = "template_mutant"
_READY = "template_lane"
_NOT_PREPARED = re.compile(
    r"psycopg\.errors\.(Syntax|Undefined|Ambiguous|Datatype|Indeterminate|Grouping|Wrong|"
    r"InvalidColumn|CannotCoerce|InvalidTextRepresentation)|"
    r"ProgrammingError: (the query has|query parameter)|SyntaxError"
)
"""What is no mutant but nonsense: a statement that cannot be prepared."""
_BROKEN = "pytest ended with {code}:\n{said}"


@dataclass(frozen=True, slots=True)
class Ran:
    """How one run of pytest ended. ``code`` None: its time was up."""

    code: int | None
    failed: tuple[dict[str, str], ...]
    ran: dict[str, Any]
    seconds: float
    cpu: float
    said: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant: killed, survived, timeout or invalid; ``by`` the first that saw."""

    result: str
    by: str | None
    seconds: float


class Lane:
    """One copy, one server, one process that forks, and one more that holds the product."""

    def __init__(
        self,
        tree: Path,
        temporary: Path,
        host: Path | None,
        forks: subprocess.Popen[str],
        loaded: subprocess.Popen[str] | None,
    ) -> None:
        self.tree = tree
        self.temporary = temporary
        self._host = host
        self._forks = forks
        self._loaded = loaded

    @classmethod
    @contextmanager
    def open(
        cls, root: Path = ROOT, *, needs_server: bool = True, kept: Path | None = None
    ) -> Iterator[Lane]:
        """A lane for the tree at ``root``, whose files stay as they are.

        ``kept``: where the copy stays, so that the next one need not be compiled again. Raises
        ``BlockingIOError`` when another lane has it.
        """
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="mut-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            tree = kept or folder / "tree"
            tree.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((tree.parent / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            copy_of(root, tree)
            host = stack.enter_context(running("embedded")).host if needs_server else None
            (folder / "tmp").mkdir()
            forks = stack.enter_context(_forks(tree, folder / "tmp"))
            loaded = None
            if host is not None:
                given = {"MUTATION_SERVER": str(host), "MUTATION_TEMPLATE": _READY}
                loaded = stack.enter_context(_forks(tree, folder / "tmp", _FIRST, *HELD, **given))
            lane = cls(tree, folder / "tmp", host, forks, loaded)
            if loaded is not None:
                # It imports the product and makes the database meanwhile: not of a mutant's tree.
                ready = lane.run([_FIRST], statements=[])
                if ready.code != 0:
                    raise Broken(_BROKEN.format(code=ready.code, said=ready.said[-3000:]))
            yield lane

    def run(
        self,
        tests: Sequence[str],
        *,
        template: str = _READY,
        seconds: float = 300.0,
        to_the_end: bool = False,
        statements: Sequence[str] | None = None,
        module: str = "",
        **env: str,
    ) -> Ran:
        """Run these tests until one fails, or all of them.

        With ``statements``, also with none: where the product is loaded already, after executing
        them in its ``module``.
        """
        temporary = self.temporary
        told, out = temporary / "told.json", temporary / "out.txt"
        told.unlink(missing_ok=True)
        settings = {"MUTATION_TOLD": str(told), **env}
        if self._host is not None:
            settings |= {"MUTATION_SERVER": str(self._host), "MUTATION_TEMPLATE": template}
        args = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "tests.mutation.warm"]
        args += [
            "-o",
            "timeout=60",
            f"--basetemp={temporary}/base",
            *([] if to_the_end else ["-x"]),
            *tests,
        ]
        order = {"args": args, "env": settings, "out": str(out), "seconds": seconds}
        forks = self._forks
        if statements is not None and self._loaded is not None:
            order |= {"statements": list(statements), "module": module}
            forks = self._loaded
        assert forks.stdin is not None
        assert forks.stdout is not None
        began = time.monotonic()
        forks.stdin.write(json.dumps(order) + "\n")
        forks.stdin.flush()
        answer = json.loads(forks.stdout.readline())
        code: int | None = answer["code"]
        took = round(time.monotonic() - began, 1)
        what: dict[str, Any] = {"failed": [], "ran": {}}
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            what = json.loads(told.read_text())
        said = out.read_text(errors="replace") if out.exists() else ""
        return Ran(code, tuple(what["failed"]), what["ran"], took, answer["cpu"], said)

    def try_mutant(self, mutant: Mutant, stages: Sequence[Sequence[str]]) -> Result:
        """Ask one set of tests after the other about the mutant, until one notices."""
        path = self.tree / mutant.path
        before, stat = path.read_bytes(), path.stat()
        template = _FRESH if mutant.is_of_the_schema else _READY
        module = mutant.path.removesuffix(".py").replace("/", ".")
        texts: list[str] | None = []  # a migration is read when the database is made
        if not mutant.is_of_the_schema:
            texts = swap.statements(before, mutant.applied(before)) if mutant.literal else None
            if texts and swap.is_imported(self.tree, module, texts):
                texts = None
        seconds = 0.0
        try:
            path.write_bytes(mutant.applied(before))
            for tests in stages:
                known = texts if all(each.startswith(HELD) for each in tests) else None
                ran = self.run(tests, template=template, statements=known, module=module)
                seconds += ran.seconds
                result = _judged(ran)
                if result != "survived":
                    return Result(result, _by(ran), round(seconds, 1))
            return Result("survived", None, round(seconds, 1))
        finally:
            path.write_bytes(before)
            os.utime(
                path, ns=(stat.st_atime_ns, stat.st_mtime_ns)
            )  # what was compiled is good again
            self._tidy(mutant)

    def _tidy(self, mutant: Mutant) -> None:
        if self._host is None:
            return
        with Postgres("embedded", self._host).superuser() as conn:
            gone = "datname LIKE 'test\\_%%'"
            if mutant.is_of_the_schema:
                gone += f" OR datname = '{_FRESH}'"
            for (name,) in conn.execute(f"SELECT datname FROM pg_database WHERE {gone}").fetchall():
                conn.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


class Broken(Exception):
    """A run that says nothing about a mutant: pytest itself failed."""


def _judged(ran: Ran) -> str:
    if ran.code is None:
        return "timeout"
    if ran.code == 0:
        return "survived"
    if not ran.failed and _AT_IMPORT not in ran.said:
        raise Broken(_BROKEN.format(code=ran.code, said=ran.said[-3000:]))
    why = " ".join(each["why"] for each in ran.failed)
    if ran.code == INVALID or _NOT_PREPARED.search(why):
        return "invalid"
    return "killed"


def _by(ran: Ran) -> str:
    return ran.failed[0]["test"] if ran.failed else "tests/conftest.py (import)"


def copy_of(root: Path, tree: Path) -> None:
    """Copy what is committed at ``root`` to ``tree``; the parts of this folder as they stand.

    What is equal stays untouched, and with it what was compiled of it.
    """
    wanted = _committed(root)
    for path in sorted(tree.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(tree).as_posix()
            if name not in wanted or path.read_bytes() != wanted[name]:
                path.unlink()
            else:
                del wanted[name]
    for name, text in wanted.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    # Compiled once, tests as well, as pytest rewrites them: the runs write nothing beside them.
    for command in (["compileall", "-q", "publisher", "reconciler"], _COLLECT) if wanted else ():
        given = {**os.environ, "PYTHONPATH": str(tree), "PUBLISHER_TEST_POSTGRES": "embedded"}
        given.pop("PYTHONDONTWRITEBYTECODE", None)
        subprocess.run(
            [sys.executable, "-m", *command], cwd=tree, env=given, check=False, capture_output=True
        )


def _committed(root: Path) -> dict[str, bytes]:
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=root, capture_output=True, check=False)
    if archive.returncode != 0:  # a tree that a test has made
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in _files(root)}
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        texts = {member.name: file.read() for member in tar if (file := tar.extractfile(member))}
    ours = root / "tests/mutation"
    return texts | {path.relative_to(root).as_posix(): path.read_bytes() for path in _files(ours)}


def _files(folder: Path) -> Iterator[Path]:
    return (
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


_COLLECT = ["pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
_AT_IMPORT = "ImportError while loading conftest"


@contextmanager
def _forks(tree: Path, temporary: Path, *held: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PUBLISHER_")}
    env = {
        **own,
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PUBLISHER_TEST_POSTGRES": "embedded",
        "TMPDIR": str(temporary),
        **more,
    }
    process = subprocess.Popen(
        [sys.executable, tree / "tests/mutation/forks.py", *held],
        cwd=tree, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
