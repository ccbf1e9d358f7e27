"""What page and journal say of a post that a rule was broken for: what a person reads first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from publisher.rehearsal.stage.ground import Ground
from publisher.sandbox.log import SandboxLog

_MARK = re.compile(r"\bc\d+-\d+")
_LONGEST = 160
_AT_MOST = 5
"""Stories of one schedule: what broke first explains most of the rest."""
_TIMELINE = (
    "SELECT t.at, t.event, t.who, t.attempt, t.detail FROM timeline t"
    " JOIN job_contents c ON c.job_id = t.job_id WHERE c.key = %s AND t.at IS NOT NULL"
    " ORDER BY t.at"
)


@dataclass(frozen=True, slots=True)
class Story:
    """``page``: where it is on the page, a line each; ``journal``: what happened, oldest first."""

    key: str
    rule: str
    page: tuple[str, ...]
    journal: tuple[str, ...]


def tell(broken: Iterable[str], ground: Ground, log: SandboxLog, url: str) -> list[Story]:
    """Tell of each post that is named in what was broken. ``url``: of the platform."""
    told: dict[str, Story] = {}
    for rule in broken:
        found = _MARK.search(rule)
        if found is None or found[0] in told or len(told) == _AT_MOST:
            continue
        key = found[0]
        page = tuple(
            f"{post.created_at:%H:%M:%S.%f}  {url}/{post.id}"
            + ("  taken down since" if post.deleted_at else "")
            for post in log.ever_posted
            if not post.foreign and post.message.partition(" ")[0] == key
        )
        rows = ground.sql(_TIMELINE, key)
        journal = tuple(
            f"{row['at']:%H:%M:%S.%f}  {row['event']:<14} attempt {row['attempt'] or '-'}"
            f"  {row['who'] or ''}  {_brief(row['detail'])}".rstrip()
            for row in rows
        )
        told[key] = Story(key, rule, page, journal)
    return [*told.values()]


def _brief(detail: object) -> str:
    if not isinstance(detail, dict):
        return ""
    known = {name: value for name, value in detail.items() if value not in (None, "", [], {})}
    text = json.dumps(known, default=str, ensure_ascii=False) if known else ""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
