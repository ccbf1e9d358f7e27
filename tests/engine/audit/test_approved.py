"""What is wrong with an approval is reported with its job, its rule and what to do next."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from publisher.editorial.people import workspaces
from publisher.engine.audit import CATALOGUE, Broken, ask, audit
from publisher.engine.audit.invariant import IN_SCOPE
from tests.engine.audit.history import Past
from tests.engine.audit.ruin import Ruin
from tests.engine.ground import Ground, superuser

BY_ID = {one.id: one for one in CATALOGUE}

BROKEN = {
    "D06": ("fresh", ("UPDATE jobs SET post_id = (SELECT post_id FROM jobs WHERE id = [held])"
                     " WHERE id = [fresh]")),
    "D17": ("in quarantine", "UPDATE jobs SET hold_reason = NULL WHERE id = [in quarantine]"),
    "D18": ("has its place", ("UPDATE attempts SET proof = NULL"
                             " WHERE job_id = [begun, then changed]")),
    "T31": ("awaits its approval", ("UPDATE jobs SET hold_reason = NULL"
                                   " WHERE id = [awaits its approval]")),
    "T32": ("live 0", "UPDATE attempts SET content_sha256 = sha256('x') WHERE job_id = [live 0]"),
    "T33": ("live 1", ("UPDATE post_versions SET content = content || ' ' WHERE id = (SELECT"
                      " version_id FROM job_contents WHERE job_id = [live 1])")),
    "C12": ("moved", ("UPDATE posts SET workspace_id = 9 WHERE id = (SELECT post_id FROM jobs"
                     " WHERE id = [moved])")),
}  # fmt: skip


@pytest.mark.parametrize("asked", BROKEN)
@pytest.mark.parametrize("full", [True, False])
def test_its_job_is_named(ruin: Ruin, asked: str, *, full: bool) -> None:
    name, sql = BROKEN[asked]
    for known, number in ruin.past.jobs.items():
        sql = sql.replace(f"[{known}]", str(number))
    with ruin.undone():
        assert ruin.change(sql) == 1
        found = ask(ruin.conn, BY_ID[asked], None if full else in_scope(ruin), alerted=True)
        assert found is not None
        at = ruin.past.jobs[name]
        assert at in [row.job_id for row in found.rows] or named_in_words(found, at)
        assert "publisher " in found.invariant.meaning or "page" in found.invariant.meaning


def in_scope(ruin: Ruin) -> list[int]:
    return [row[0] for row in ruin.conn.execute(IN_SCOPE).fetchall()]


def named_in_words(found: Broken, job: int) -> bool:
    """Of two open jobs of one post the newer is the row, and both are in the words."""
    return any(str(job) in row.detail for row in found.rows)


def test_the_whole_audit_reports_what_a_superuser_did_past_the_triggers(
    own_ground: Ground, tmp_path: Path
) -> None:
    past = Past(own_ground, tmp_path)
    past.edits()
    assert not audit(own_ground.conn, full=True).broken
    with superuser(own_ground.server, own_ground.name) as root:
        root.execute("SET session_replication_role = replica")
        root.execute(
            "UPDATE publisher.jobs SET hold_reason = NULL WHERE id = %s",
            [past.jobs["approval withdrawn"]],
        )
    (broken,) = [one for one in audit(own_ground.conn).broken if one.invariant.id == "T31"]
    assert [row.job_id for row in broken.rows] == [past.jobs["approval withdrawn"]]
    assert "approval withdrawn" in broken.rows[0].detail
    assert "publisher jobs hold" in broken.invariant.meaning


def test_a_new_rule_for_edits_makes_nothing_of_before_a_breach(
    own_ground: Ground, tmp_path: Path
) -> None:
    """Under *keep* it was let be; from now on it would be held."""
    past = Past(own_ground, tmp_path)
    rule(own_ground, "keep")
    past.jobs["let be"] = past.desk.post(due=timedelta(hours=1))
    past.save("let be", "another text")
    rule(own_ground, "hold")
    assert own_ground.row(past.jobs["let be"])["hold_reason"] is None
    assert not [one.invariant.id for one in audit(own_ground.conn, full=True).broken]
    past.save("let be", "a third text")
    assert own_ground.row(past.jobs["let be"])["hold_reason"] is not None
    with superuser(own_ground.server, own_ground.name) as root:
        root.execute("SET session_replication_role = replica")
        root.execute("UPDATE publisher.jobs SET hold_reason = NULL")
    assert "T31" in [one.invariant.id for one in audit(own_ground.conn, full=True).broken]


def rule(ground: Ground, edit_rule: str) -> None:
    with ground.app.engine.begin() as conn:
        (workspace,) = workspaces.listing(conn)
        workspaces.change(conn, workspace, edit_rule=edit_rule, who="chief")
