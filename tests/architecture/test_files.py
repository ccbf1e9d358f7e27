"""What no file may be, hold or be called."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST = 400
FORBIDDEN_NAMES = {"utils", "helpers", "common", "models", "services", "manager"}
HOSTS = re.compile(
    r"pypi\.(org|io)|python" + r"hosted|registry\.npm" + r"js|deb\.debian" + r"\.org|files\.pyth"
)
MACHINE_PATH = re.compile(r"(^|[^a-zA-Z0-9_.])/(work|far" + r"m|root|home/[a-z])/")
MERGE = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)


def tracked() -> list[Path]:
    """Files that git has or would add: what a clone would have."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("this is no git checkout")
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def python(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_module_is_past_400_lines() -> None:
    long = {
        shown(path): lines
        for path in python("publisher", "reconciler")
        if (lines := len(path.read_text().splitlines())) > LONGEST
    }
    assert not long


def test_nothing_is_named_after_a_role() -> None:
    named = [
        shown(path)
        for path in python("publisher", "reconciler", "tests")
        if FORBIDDEN_NAMES & {path.stem, *path.relative_to(ROOT).parts}
    ]
    assert not named


def test_every_module_opens_with_a_sentence() -> None:
    silent = [
        shown(path)
        for path in python("publisher", "reconciler")
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent


def test_only_the_ledger_makes_permits() -> None:
    makers = {
        shown(path)
        for path in python("publisher", "reconciler")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _name(node.func) == "SendPermit"
    }
    assert makers == {"publisher/engine/ledger/begin.py"}


def test_nothing_that_repeats_can_wrap_a_publish() -> None:
    repeating = [
        shown(path)
        for path in python("publisher/engine", "publisher/adapters")
        if re.search(r"^\s*(import|from) tenacity", path.read_text(), re.MULTILINE)
    ]
    assert not repeating


def test_no_tracked_file_names_a_registry_or_a_path_of_one_machine() -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if HOSTS.search(line) or MACHINE_PATH.search(line):
                found.append(f"{shown(path)}:{number}: {line[:120]}")
        if MERGE.search(text):
            found.append(f"{shown(path)}: a merge was left half-way")
    assert not found


def test_the_locks_hold_hashes_alone() -> None:
    for name in ("run.lock", "dev.lock"):
        lines = (ROOT / "requirements" / name).read_text().splitlines()
        entries = [line for line in lines if line and not line.startswith(("#", " "))]
        assert entries
        assert all("==" in line and line.endswith("\\") for line in entries), name
        assert not [line for line in lines if "://" in line or line.startswith("--")], name


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
