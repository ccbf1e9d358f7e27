"""``publisher rehearse`` as a team's CI runs it: exit codes, reports, what is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from publisher.rehearsal.isolation import isolate
from publisher.rehearsal.scenarios import SCENARIOS
from tests.rehearsal import pgbouncer
from tests.rehearsal.pgbouncer import Pooled

VARIANT = "timeout read as failure"


def rehearse(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "publisher", "rehearse", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.timeout(300)
def test_a_scenario_is_kept_and_told_to_people_and_machines(tmp_path: Path) -> None:
    done = rehearse("edits", "--seeds", "1..2", "--lanes", "2", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout
    folder = tmp_path / "rehearsals/1"
    assert {file.name for file in folder.iterdir()} == {"index.html", "junit.xml", "report.json"}
    facts = json.loads((folder / "report.json").read_text())
    assert facts["outcome"] == "kept"
    (part,) = (tmp_path / "rehearsals/ledger.jsonl").read_text().splitlines()
    kept = json.loads(part)
    assert (kept["scenario"], kept["first"], kept["last"], kept["schedules"]) == ("edits", 1, 2, 2)
    assert kept["outcomes"]["duplicates"] == 0


@pytest.mark.timeout(300)
def test_a_broken_engine_fails_and_its_seed_shows_the_same_again(tmp_path: Path) -> None:
    words = ("random", "--seeds", "1..2", "--variant", VARIANT, "--lanes", "2")
    done = rehearse(*words, folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    command = f"publisher rehearse replay 1 --variant '{VARIANT}'"
    assert command in done.stdout
    assert done.stdout.index(command) < done.stdout.index("Page against journal")
    assert not (tmp_path / "rehearsals/ledger.jsonl").exists()
    again = rehearse("replay", "1", "--variant", VARIANT, folder=tmp_path)
    assert again.returncode == 1
    assert "BROKEN  duplicate: " in again.stdout


@pytest.mark.timeout(300)
def test_nothing_of_the_deployment_it_is_started_in_is_touched(tmp_path: Path) -> None:
    witness, home = tmp_path / "witness", tmp_path / "home"
    done = rehearse(
        *("edits", "--seeds", "2"),
        folder=tmp_path,
        PUBLISHER_WITNESS=str(witness),
        PUBLISHER_HOME=str(home),
        PUBLISHER_DATABASE_URL="postgresql://nobody@127.0.0.1:1/production",
        PUBLISHER_ALERT_CHANNELS="production",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not witness.exists()
    assert not home.exists()


def test_isolation_keeps_what_says_how_to_reach_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBLISHER_PREPARE", "off")
    monkeypatch.setenv("PUBLISHER_VAULT_KEY", "secret")
    assert "PUBLISHER_VAULT_KEY" in isolate()
    assert "PUBLISHER_VAULT_KEY" not in os.environ
    assert os.environ["PUBLISHER_PREPARE"] == "off"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("random", "--seeds", "9..3"), "--seeds takes 1..2000"),
        (("random", "--for", "soon"), "--for takes 90s, 10m or 2h"),
        (("replay", "1", "--scenario", "nothing"), "There is no scenario nothing"),
        (("random", "--seeds", "1", "--variant", "none"), "There is no broken variant 'none'"),
        (("edits", "--direct-url", "postgresql://x/y"), "go with --database-url"),
        (("clean", "Page A", "--database-url", "postgresql://x/y"), "not both"),
        (("edits", "--seeds", "1", "--database-url", "postgresql://x@127.0.0.1:1/y"), "let us in"),
        (("edits", "--seeds", "1", "--database-url", "mysql://x/y"), "--database-url is no"),
    ],
)
def test_what_keeps_it_from_beginning_is_said_and_is_exit_2(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = rehearse(*words, folder=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_seed_of_a_scenario_always_means_the_same(name: str) -> None:
    scenario = SCENARIOS[name]
    assert scenario.draw(217) == scenario.draw(217)
    assert scenario.draw(217) != scenario.draw(218)
    assert scenario.draw(3).scenario == name


@pytest.mark.timeout(400)
@pytest.mark.skipif(
    not pgbouncer.is_installed(), reason="needs Debian's postgresql-15 and pgbouncer"
)
def test_a_given_server_behind_a_transaction_pooler_is_left_as_it_was(tmp_path: Path) -> None:
    with pgbouncer.running() as pooled:
        before = pooled.databases()
        words = ("random", "--seeds", "1..2", "--lanes", "2", *pooled.options())
        done = rehearse(*words, folder=tmp_path, PUBLISHER_PREPARE="off")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "PostgreSQL 15" in done.stdout
        assert pooled.databases() == before
        _leave_one_behind(pooled)
        cleaned = rehearse("clean", *pooled.options()[:2], *pooled.options()[4:], folder=tmp_path)
        assert cleaned.returncode == 0, cleaned.stderr
        assert "Dropped publisher_rehearsal_left" in cleaned.stdout
        assert pooled.databases() == before


def _leave_one_behind(pooled: Pooled) -> None:
    """As a rehearsal does that was killed."""
    pooled.execute("CREATE DATABASE publisher_rehearsal_left OWNER acceptance")
