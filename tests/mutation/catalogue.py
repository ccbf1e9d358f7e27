"""Every mutant of the source as it is now, and the tests that should notice each."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutation import edits, sql
from tests.mutation.literals import Literal, Source, literals

ROOT = Path(__file__).parents[2]

# Read from the top; the first that fits a file, and the piece of it, says which tests are asked
# first. A file of SQL without a row is asked of everything.
_LEDGER = "tests/engine/ledger"
_KERNEL = "migrations/versions/0001_kernel.py"
_POSTS = "tests/editorial/posts"
_ROWS = "tests/db/test_rows.py"
_WALLS = "tests/db/test_walls.py"
_KEYS = "tests/engine/test_checks.py::test_what_there_is_of_each_only_once"
TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (f"{_KERNEL}:PAIRS", ("tests/engine/test_trigger.py", "tests/engine/test_refusals.py")),
    (f"{_KERNEL}:TABLES", ("tests/engine/test_checks.py", "tests/engine/test_refusals.py",
                           f"{_LEDGER}/test_begin.py", f"{_LEDGER}/test_enqueue.py",
                           f"{_LEDGER}/test_people.py")),
    (f"{_KERNEL}:JOB_MOVED", ("tests/engine/test_shortcuts.py", "tests/engine/test_refusals.py",
                              "tests/engine/test_refusals_more.py", "tests/engine/test_trigger.py",
                              f"{_LEDGER}/test_late.py", f"{_LEDGER}/test_unique.py")),
    (f"{_KERNEL}:TRIGGERS", ("tests/engine/test_refusals_more.py", "tests/engine/test_shortcuts.py",
                             "tests/engine/test_refusals.py", "tests/engine/test_checks.py",
                             "tests/engine/test_trigger.py", f"{_LEDGER}/test_people.py")),
    (f"{_KERNEL}:", (f"{_LEDGER}/test_enqueue.py", f"{_LEDGER}/test_unique.py",
                     "tests/engine/test_refusals_more.py")),
    ("migrations/versions/0002", ("tests/engine/test_checks.py",
                                  "tests/engine/test_refusals_more.py",
                                  "tests/engine/test_upgrades.py",
                                  "tests/reconciler/test_doubts.py")),
    ("migrations/versions/0005", (_ROWS, _KEYS)),
    ("migrations/versions/0006", (_WALLS, _KEYS)),
    ("migrations/versions/0007_reviews.py:TABLES", (_ROWS, _KEYS)),
    ("migrations/versions/0007_reviews.py:REFUSALS", (f"{_POSTS}/test_trashed.py", _ROWS,
                                                      f"{_POSTS}/test_refusals.py")),
    ("migrations/versions/0007_reviews.py:APPROVED", (f"{_POSTS}/test_approved.py",
                                                      f"{_POSTS}/test_stands.py",
                                                      f"{_POSTS}/test_refusals.py",
                                                      f"{_POSTS}/test_edits.py")),
    ("migrations/versions/0007_reviews.py:WHOLE", (f"{_POSTS}/test_stands.py",
                                                   f"{_POSTS}/test_refusals.py",
                                                   f"{_POSTS}/test_edits.py")),
    ("migrations/versions/0007", (_WALLS,)),
    ("migrations/versions/0008_media.py:TABLES", (_ROWS, _KEYS)),
    ("migrations/versions/0008", (_WALLS,)),
    ("migrations/versions/0009_times.py:POSTING_TIMES", (_ROWS, _KEYS,
                                                         "tests/editorial/test_posting_times.py")),
    ("migrations/versions/0009_times.py:WALLS", (_WALLS,)),
    ("migrations/versions/0009_times.py", (f"{_LEDGER}/test_backlog.py",
                                           "tests/editorial/test_posting_times.py", _WALLS)),
    ("migrations/versions/0010", (_ROWS, _KEYS, _WALLS)),
    ("migrations/versions/0011", (f"{_LEDGER}/test_held_back.py",
                                  f"{_LEDGER}/test_quarantine_again.py",
                                  f"{_LEDGER}/test_quarantine.py")),
    ("migrations/versions/0012", (f"{_POSTS}/test_removals.py", "tests/engine/test_removal.py",
                                  f"{_LEDGER}/test_enqueue.py", f"{_LEDGER}/test_unique.py",
                                  f"{_LEDGER}/test_backlog.py", _KEYS)),
    ("migrations/versions/0015", (f"{_POSTS}/test_twice.py", f"{_POSTS}/test_approved.py",
                                  f"{_POSTS}/test_stands.py", f"{_POSTS}/test_refusals.py",
                                  f"{_POSTS}/test_edits.py")),
    ("migrations/", ("tests/engine/test_checks.py", f"{_LEDGER}/test_quarantine.py",
                     f"{_LEDGER}/test_quarantine_again.py", f"{_LEDGER}/test_held_back.py")),
    ("publisher/engine/transitions.py", ("tests/engine/test_transition_rows.py",)),
    ("publisher/engine/ledger/claim.py", (f"{_LEDGER}/test_claim.py", f"{_LEDGER}/test_turns.py",
                                           f"{_LEDGER}/test_runs.py",
                                           f"{_LEDGER}/test_backlog.py",
                                           f"{_LEDGER}/test_standstill.py")),
    ("publisher/engine/ledger/backlog.py", (f"{_LEDGER}/test_backlog.py",
                                            f"{_LEDGER}/test_standstill.py")),
    ("publisher/engine/ledger/replaced.py", ("tests/engine/worker/test_replacing.py",)),
    ("publisher/engine/ledger/begin.py", (f"{_LEDGER}/test_begin.py",
                                          f"{_LEDGER}/test_standstill.py",
                                          f"{_LEDGER}/test_backlog.py",
                                          f"{_LEDGER}/test_bystanders.py",
                                          f"{_LEDGER}/test_races.py")),
    ("publisher/engine/ledger/settle.py", (f"{_LEDGER}/test_settle.py",
                                           f"{_LEDGER}/test_rests.py",
                                           f"{_LEDGER}/test_late.py")),
    ("publisher/engine/ledger/late.py", (f"{_LEDGER}/test_late.py",
                                         "tests/engine/test_orphans.py")),
    ("publisher/engine/ledger/leases.py", (f"{_LEDGER}/test_leases.py",
                                           f"{_LEDGER}/test_quarantine_again.py",
                                           f"{_LEDGER}/test_backlog.py")),
    ("publisher/engine/ledger/incarnations.py", (f"{_LEDGER}/test_runs.py",
                                                 f"{_LEDGER}/test_backlog.py",
                                                 f"{_LEDGER}/test_standstill.py",
                                                 "tests/engine/test_rescue.py")),
    ("publisher/engine/ledger/people.py", (f"{_LEDGER}/test_people.py",
                                           f"{_LEDGER}/test_unique.py")),
    ("publisher/engine/ledger/of_post.py", (f"{_POSTS}/test_stands.py",)),
    ("publisher/engine/ledger/enqueue.py", (f"{_LEDGER}/test_enqueue.py",)),
    ("publisher/engine/ledger/quarantine.py", (f"{_LEDGER}/test_quarantine.py",
                                               f"{_LEDGER}/test_quarantine_again.py",
                                               f"{_LEDGER}/test_held_back.py")),
    ("publisher/engine/ledger/suspects.py", (
        f"{_LEDGER}/test_doubts.py", f"{_LEDGER}/test_quarantine_again.py",
        f"{_LEDGER}/test_quarantine.py", "tests/reconciler/test_quarantine.py",
        f"{_LEDGER}/test_bystanders.py::test_nothing_happens_to_any_other_in_quarantine")),
    ("publisher/engine/ledger/verdicts.py", ("tests/reconciler/test_verdicts.py",
                                             "tests/reconciler/test_repeats.py",
                                             f"{_LEDGER}/test_held_back.py")),
    ("publisher/engine/ledger/doubts.py", (f"{_LEDGER}/test_senders.py",
                                           f"{_LEDGER}/test_doubts.py",
                                           "tests/reconciler/test_doubts.py",
                                           "tests/reconciler/test_rounds.py",
                                           "tests/reconciler/test_sender.py")),
    ("publisher/engine/ledger/alerts.py", ("tests/engine/test_alert_facts.py",
                                           "tests/engine/test_alerts.py")),
    ("publisher/engine/ledger/", (f"{_LEDGER}/test_runs.py", "tests/engine/test_rescue.py",
                                  "tests/engine/test_witness.py")),
    ("publisher/engine/queries/due.py", ("tests/engine/test_closed_sets.py",
                                         "tests/engine/test_queries.py")),
    ("publisher/engine/queries/", ("tests/engine/test_queries.py", "tests/engine/test_orphans.py")),
    ("publisher/engine/", ("tests/engine/test_closed_sets.py",)),
    ("publisher/transport/phases.py", ("tests/transport/test_phases_by_hand.py",
                                       "tests/transport/test_phases.py")),
    ("publisher/transport/", ("tests/transport/test_ends.py",)),
    ("publisher/mailer/phases.py", ("tests/test_mailer_phases.py",)),
    ("publisher/mailer/", ("tests/transport/test_ends.py",)),
    ("publisher/graph/", ("tests/test_graph_rows.py", "tests/test_graph.py")),
    ("publisher/adapters/bluesky/refusals.py", (
        "tests/adapters/test_bluesky_rows.py",
        "tests/adapters/test_bluesky_refusals.py::test_each_row")),
    ("publisher/adapters/mastodon/refusals.py", (
        "tests/adapters/test_mastodon_rows.py",
        "tests/adapters/test_mastodon_answers.py::TestClosedList")),
    ("publisher/adapters/mastodon/", ("tests/adapters/test_mastodon_rows.py",
                                      "tests/adapters/test_mastodon_answers.py")),
    ("publisher/adapters/telegram/", ("tests/adapters/test_telegram_rows.py",
                                      "tests/adapters/test_telegram_refusals.py")),
    ("publisher/adapters/webhook/", ("tests/adapters/test_webhook_rows.py",)),
)  # fmt: skip
WIDER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("migrations/", (f"{_LEDGER}", "tests/engine/test_orphans.py", "tests/engine/test_journal.py",
                     "tests/engine/test_rescue.py", "tests/engine/test_alerts.py",
                     "tests/reconciler/test_verdicts.py", "tests/reconciler/test_repeats.py",
                     "tests/reconciler/test_quarantine.py")),
    ("publisher/engine/transitions.py", ("tests/engine/test_transitions.py",)),
    ("publisher/engine/ledger/", (f"{_LEDGER}/test_enqueue.py", f"{_LEDGER}/test_quarantine.py")),
    ("publisher/engine/", ("tests/engine/worker/test_looks.py",)),
    ("publisher/transport/", ("tests/transport", "tests/adapters/test_facebook_pages_lies.py")),
    ("publisher/mailer/", ("tests/adapters/test_mail.py", "tests/adapters/test_mail_lies.py")),
    ("publisher/graph/", ("tests/adapters/test_facebook_pages.py",
                          "tests/adapters/test_facebook_pages_lies.py")),
    ("publisher/adapters/bluesky/", ("tests/adapters/test_bluesky_refusals.py",
                                     "tests/adapters/test_bluesky_sessions.py",
                                     "tests/adapters/test_bluesky.py")),
    ("publisher/adapters/mastodon/", ("tests/adapters/test_mastodon_answers.py",
                                      "tests/adapters/test_mastodon.py")),
    ("publisher/adapters/telegram/", ("tests/adapters/test_telegram_refusals.py",
                                      "tests/adapters/test_telegram.py",
                                      "tests/adapters/test_telegram_content.py")),
    ("publisher/adapters/facebook_pages/", ("tests/adapters/test_facebook_pages.py",)),
    ("publisher/adapters/mail/", ("tests/adapters/test_mail.py",)),
    ("publisher/", ("tests/adapters/test_webhook.py",)),
)  # fmt: skip
"""What is asked when nothing of ``TESTS`` notices, and no record says which tests run the SQL."""

GUARDED = ("publisher/engine/ledger/", "migrations/")
GUARDS = (f"{_LEDGER}/test_guards.py",)
"""Tests that were written for what survived."""
_BESIDE = f"{_LEDGER}/test_bystanders.py::test_nothing_happens_to_any_other[embedded-{{}}]"
BYSTANDERS = {
    "late": ("a late yes", "a late no", "a late not now", "found in a file",
             "found in a file with its post"),
    "verdicts": ("it is live", "it was seen", "it is absent", "it is absent, again", "forced",
                 "repeat", "drop"),
    "doubts": ("take", "take what nobody has", "snooze", "look now", "a look", "a look given back"),
    "leases": ("rescue", "rescue a claim", "forsake", "expire"),
    "people": ("cancel", "cancel a claim", "move", "hold and release", "replace", "requeue",
               "restore"),
}  # fmt: skip
"""What of the test of bystanders is about which module of the ledger."""

QUERIES = (
    "publisher/engine/ledger", "publisher/engine/rescue.py", "publisher/engine/guard.py",
    "publisher/engine/queries/due.py", "publisher/engine/queries/doubts.py",
    "publisher/engine/queries/deployment.py", "publisher/engine/queries/fleet.py",
    "publisher/engine/queries/quarantine.py", "publisher/engine/queries/orphans.py",
    "migrations/versions",
)  # fmt: skip
"""Where SQL is read for its guards: what writes, and queries that something follows from."""
LISTS = (
    "publisher/engine/transitions.py", "publisher/engine/job.py", "publisher/engine/queries/due.py",
    "publisher/engine/worker/held.py", "publisher/transport/phases.py",
    "publisher/transport/exchange.py", "publisher/mailer/phases.py", "publisher/mailer/mailer.py",
    "publisher/graph/refusals.py", "publisher/adapters", "publisher/engine/ledger",
    "migrations/versions",
)  # fmt: skip
"""Where tables, closed lists and the conditions of composed queries are read."""
LAID_OUT = frozenset(
    {"_MEDIA", "_WORDS", "_DESK", "_LET_GO", "_PAIRS", "_NEVER_KEPT", "_OURS", "_BARE_MARKERS"}
)
"""Tables that decide nothing about a send: limits of files, words, fields, what a JPEG holds."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file. ``digest`` is of the statement or table that it is made to.

    ``start`` to ``end`` of the file, in bytes, become ``instead``; ``literal`` names its SQL.
    """

    id: str
    path: str
    within: str
    kind: str
    was: str
    now: str
    digest: str
    changes: tuple[tuple[int, int, bytes], ...]
    literal: str | None = None

    @property
    def key(self) -> str:
        """What a result is kept under: another statement asks for another run."""
        return f"{self.id} {self.digest}"

    @property
    def is_of_the_schema(self) -> bool:
        """Whether the database itself is made otherwise."""
        return self.path.startswith("migrations/")

    def applied(self, text: bytes) -> bytes:
        """The file with this change."""
        for start, end, instead in sorted(self.changes, reverse=True):
            text = text[:start] + instead + text[end:]
        return text

    def tests(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What is asked first, and what then."""
        first = _first(TESTS, f"{self.path}:{self.within}")
        if self.path.startswith(GUARDED):
            first += GUARDS
            of_module = BYSTANDERS.get(Path(self.path).stem, ())
            first += tuple(_BESIDE.format(name) for name in of_module)
        return first, _first(WIDER, self.path)


def _first(table: tuple[tuple[str, tuple[str, ...]], ...], path: str) -> tuple[str, ...]:
    return next((tests for start, tests in table if path.startswith(start)), ())


def mutants(root: Path = ROOT) -> list[Mutant]:
    """Every mutant of the tree at ``root``, in the order of its files."""
    members = _members(root)
    found = [
        mutant
        for path in _files(root, QUERIES)
        for mutant in _of_queries(root, path)
    ] + [
        mutant
        for path in _files(root, LISTS)
        for mutant in _of_lists(root, path, members)
    ]  # fmt: skip
    return _numbered(found)


def pieces(root: Path = ROOT) -> dict[str, str]:
    """Every piece of SQL that has mutants, by ``path:name``."""
    return {
        f"{path}:{literal.name}": literal.text
        for path in _files(root, QUERIES)
        for literal in literals(Source((root / path).read_bytes()))
    }


def _files(root: Path, places: tuple[str, ...]) -> Iterator[str]:
    seen = set()
    for place in places:
        at = root / place
        for path in sorted(at.rglob("*.py")) if at.is_dir() else [at]:
            name = path.relative_to(root).as_posix()
            if name not in seen:
                seen.add(name)
                yield name


def _members(root: Path) -> dict[str, tuple[str, ...]]:
    """Of each enumeration of the engine, what its members are called."""
    found = {}
    for path in sorted((root / "publisher/engine").glob("*.py")):
        for node in ast.parse(path.read_bytes()).body:
            match node:
                case ast.ClassDef(name=name, bases=[ast.Name(id="StrEnum" | "IntEnum")]):
                    found[name] = tuple(
                        each.targets[0].id
                        for each in node.body
                        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
                    )
    return found


def _of_queries(root: Path, path: str) -> Iterator[Mutant]:
    source = Source((root / path).read_bytes())
    for literal in literals(source):
        whole = " ".join(literal.text.split())
        cuts = sql.cuts(literal.text)
        for cut in cuts:
            yield _mutant_of(path, literal, whole, cut.kind, [cut])
        # A guard that stands twice in a statement hides behind its double: without both it shows.
        twins: dict[tuple[str, str], list[sql.Cut]] = defaultdict(list)
        for cut in cuts:
            if cut.kind == "guard":
                twins[_bare(literal.text[cut.start : cut.end]), cut.instead].append(cut)
        for same in twins.values():
            if len(same) > 1 and not path.startswith("migrations/"):
                yield _mutant_of(path, literal, whole, "all", same)


def _bare(text: str) -> str:
    """A guard without the name of its table's alias."""
    words = (token.text.split(".")[-1] for token in sql.tokens(text))
    return " ".join(words)


def _mutant_of(path: str, literal: Literal, whole: str, kind: str, cuts: list[sql.Cut]) -> Mutant:
    text = literal.text
    was = " ".join(text[cuts[0].start : cuts[0].end].split())
    for cut in sorted(cuts, key=lambda each: each.start, reverse=True):
        text = text[: cut.start] + cut.instead + text[cut.end :]
    change = (literal.start, literal.end, literal.written(text))
    now = cuts[0].instead or "nothing"
    digest = _digest(whole)
    return Mutant(
        "", path, literal.name, kind, was, now, digest, (change,), f"{path}:{literal.name}"
    )


def _of_lists(root: Path, path: str, members: dict[str, tuple[str, ...]]) -> Iterator[Mutant]:
    source = Source((root / path).read_bytes())
    found = list(edits.edits(source, members=members))
    if path.endswith("engine/transitions.py"):
        found += edits.absent_moves(source, members)
    if path.startswith("migrations/"):
        found = list(edits.pairs(source, members))
    for edit in found:
        if edit.within in LAID_OUT:
            continue
        change = (edit.start, edit.end, edit.instead.encode())
        now = " ".join(edit.instead.split()) or "nothing"
        digest = _digest(edit.whole)
        yield Mutant("", path, edit.within, edit.kind, edit.was, now, digest, (change,))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _numbered(found: list[Mutant]) -> list[Mutant]:
    """With their ids: what is changed and how, and the how-manieth of those that read alike."""
    seen: Counter[str] = Counter()
    named = []
    for each in found:
        words = f"{each.kind}\n{each.was}\n{each.now}"
        start = f"{each.path}:{each.within}:{each.kind}:{_digest(words)[:8]}"
        seen[start] += 1
        number = f".{seen[start]}" if seen[start] > 1 else ""
        named.append(
            Mutant(
                start + number,
                each.path,
                each.within,
                each.kind,
                each.was,
                each.now,
                each.digest,
                each.changes,
                each.literal,
            )
        )
    return named
