"""Sentences that every way of telling a report shares, and text that is safe to show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from publisher.rehearsal.report.report import (
    Bound,
    Check,
    Failure,
    Outcome,
    Ran,
    Report,
    Settled,
    Told,
)
from publisher.words import N_, _, many

MARKS: Final = {True: "✔", False: "✘", None: "–"}
"""What stands before a line that holds, one that does not, and one that had no case."""

_RULES: Final = {
    "duplicates": N_("duplicates"),
    "lost": N_("lost"),
    "unreported": N_("unreported"),
    "false success": N_("false success"),
    "other": N_("other"),
}
_GLOSSES: Final = {
    "duplicates": N_("on the page twice"),
    "lost": N_("approved, and never came to an end"),
    "unreported": N_("on the page, and the journal says no"),
    "false success": N_("live in the journal, and not on the page"),
    "other": N_("another rule of the product"),
}
_OUTCOMES: Final = {
    Outcome.KEPT: N_("PASSED"),
    Outcome.BROKEN: N_("FAILED"),
    Outcome.TOO_LITTLE: N_("PROVES TOO LITTLE"),
}
_ELSEWHERE: Final = {
    "failed": (N_("{n} not published"), N_("{n} not published")),
    "missed": (N_("{n} missed"), N_("{n} missed")),
    "cancelled": (N_("{n} cancelled"), N_("{n} cancelled")),
    "on hold": (N_("{n} on hold"), N_("{n} on hold")),
    "scheduled": (N_("{n} held after a restore"), N_("{n} held after a restore")),
    "dropped": (N_("{n} dropped"), N_("{n} dropped")),
    "gone with the journal": (N_("{n} lost with the database"), N_("{n} lost with the database")),
}
"""Words of the table for what is not live → how many of it, said."""

_CONTROLS: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "␡",
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "\ufffd"),
    # Overrides, embeddings and isolates: one left open turns round what stands after it.
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"),
}
_MORE: Final = 50
"""Seeds more, where a scenario proved too little."""
_OWN: Final = re.compile(r"\bhttps?://(127\.|localhost\b|\[::1\])")


def visible(text: str) -> str:
    """The text on one line, with control characters shown instead of obeyed."""
    return text.translate(_CONTROLS)


def paragraph(text: str) -> list[str]:
    """The text in its lines, each of them ``visible``."""
    return [visible(line) for line in text.splitlines()]


def rule(word: str) -> str:
    """A word of the promise; see ``report.WORDS``."""
    return _(_RULES.get(word, word))


def gloss(word: str) -> str:
    """What that word means."""
    return _(_GLOSSES[word]) if word in _GLOSSES else ""


def outcome(report: Report) -> str:
    """How it ended, in capitals."""
    return _(_OUTCOMES[report.outcome])


def title(report: Report) -> str:
    """Which rehearsal this is."""
    return _("Rehearsal {run}").format(run=report.run)


def about(report: Report) -> list[str]:
    """What was rehearsed, and on what."""
    is_release = report.commit.startswith("release ")
    of = report.commit if is_release else _("commit {commit}").format(commit=report.commit)
    schedules = sum(ran.schedules for ran in report.ran)
    lengths = many(
        "{n} schedule of {scenarios}",
        "{n} schedules of {scenarios}",
        schedules,
        scenarios=many("{n} scenario", "{n} scenarios", len(report.ran)),
    )
    if len(report.ran) == 1:
        lengths = seeds(report.ran[0])
    return [visible(part) for part in (of, report.server, lengths) if part]


def seeds(ran: Ran) -> str:
    """A scenario, and which seeds of it ran."""
    return f"{visible(ran.scenario)} {span(ran)}"


def span(ran: Ran) -> str:
    """The first and the last seed, once where they are the same."""
    return f"{ran.first}" if ran.first == ran.last else f"{ran.first}..{ran.last}"


def lasted(seconds: float) -> str:
    """So long, in minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def posts(report: Report) -> list[str]:
    """How many were approved, how many are on the page, and how many the journal calls live."""
    counts = report.counts
    said = (
        _("{n} approved").format(n=f"{counts.get('approved', 0):,}"),
        _("{n} on the page").format(n=f"{counts.get('on the page', 0):,}"),
        _("{n} live in the journal").format(n=f"{counts.get('live in the journal', 0):,}"),
    )
    return [*said]


def elsewhere(report: Report) -> list[str]:
    """What became of the posts that are not live."""
    counts = report.counts
    return [many(*both, counts[word]) for word, both in _ELSEWHERE.items() if counts.get(word)]


def doubts(report: Report) -> str:
    """How many posts may be live, and whether each can be seen."""
    count = report.counts.get("in doubt", 0)
    if not count:
        return _("no doubt is left")
    if report.rules.get("unreported"):
        return many("{n} still in doubt", "{n} still in doubt", count)
    return many("{n} still in doubt, visible", "{n} still in doubt, all visible", count)


def lied(report: Report) -> str:
    """How often the platform said what was not so; empty where it never did."""
    if not report.lied:
        return ""
    return many(
        "{n} where the platform lied, counted apart",
        "{n} where the platform lied, counted apart",
        report.lied,
    )


def check(one: Check) -> tuple[bool | None, str]:
    """Whether it is met, and its count; None: there was no case of it."""
    if not one.of:
        return None, _("no case")
    return one.is_met, _("{count} of {of}").format(count=f"{one.count:,}", of=f"{one.of:,}")


def settled(one: Settled) -> str:
    """How many doubts of a platform settled by themselves."""
    share = f"{100 * one.count / one.of:.1f}" if one.of else "-"
    platform = _("all") if one.platform == "all" else visible(one.platform)
    return _("{platform} {count} of {of} ({share} %)").format(
        platform=platform, count=f"{one.count:,}", of=f"{one.of:,}", share=share
    )


def caught(proof: dict[str, str | None]) -> str:
    """How many of the broken variants were caught."""
    found = sum(said is not None for said in proof.values())
    return many(
        "{found} of {n} broken variant caught",
        "{found} of {n} broken variants caught",
        len(proof),
        found=f"{found:,}",
    )


def not_proved() -> str:
    """What is said where nobody asked for the proof."""
    return _("not asked: --prove runs the broken variants")


def bound(one: Bound) -> str:
    """What zero failures is worth so far, or that there were failures."""
    faults = f"{one.faults:,}"
    if one.failures:
        return many(
            "{n} failure in {faults} faults so far; see the ledger",
            "{n} failures in {faults} faults so far; see the ledger",
            one.failures,
            faults=faults,
        )
    if not one.one_in:
        return _("too few faults so far to say anything: {faults}").format(faults=faults)
    return many(
        "0 in {faults} faults ({n} schedule) so far: below 1 in {one_in} (95 %)",
        "0 in {faults} faults ({n} schedules) so far: below 1 in {one_in} (95 %)",
        one.schedules,
        faults=faults,
        one_in=f"{one.one_in:,}",
    )


def reasons(report: Report) -> list[str]:
    """Why it did not pass; of a run that did, nothing."""
    if report.outcome is Outcome.KEPT:
        return []
    if report.outcome is Outcome.TOO_LITTLE:
        return _what_is_missing(report)
    said = []
    if broken := len(report.failures):
        said.append(
            many("a rule was broken in {n} schedule", "a rule was broken in {n} schedules", broken)
        )
    said += [
        _("a broken variant got through: {name}").format(name=visible(name))
        for name in report.through
    ]
    said += [
        _("too few doubts settled by themselves: {share}").format(share=settled(one))
        for one in _too_few(report.settled)
    ]
    if left := len(report.left_behind):
        said.append(
            many(
                "{n} post is still on a real page",
                "{n} posts are still on a real page",
                left,
            )
        )
    return said


def _too_few(shares: Sequence[Settled]) -> list[Settled]:
    """The platforms, and all together only where it is none of them."""
    few = [one for one in shares if not one.is_enough]
    return [one for one in few if one.platform != "all"] or few


def _what_is_missing(report: Report) -> list[str]:
    said = [
        many(
            "{what}: {n} was never met", "{what}: {n} were never met", len(one.missing),
            what=_(one.what),
        )
        for one in report.reached
        if one.missing
    ]  # fmt: skip
    for one in report.checklist:
        if not one.of:
            said.append(_("{check}: no case of it").format(check=_(one.says)))
        elif not one.is_met:
            said.append(_("{check}: {count}").format(check=_(one.says), count=check(one)[1]))
    return said


def next_commands(report: Report) -> list[str]:
    """What to run now; nothing after a run that passed."""
    commands = [failure.replay for failure in report.failures[:1]]
    commands += ["publisher rehearse clean"] if report.left_behind else []
    if report.outcome is Outcome.TOO_LITTLE:
        is_one = len(report.ran) == 1
        more = f"{report.ran[0].scenario} --more {_MORE}" if is_one else "--all"
        commands.append(f"publisher rehearse {more}")
    return commands


def name(failure: Failure) -> str:
    """Which schedule it was."""
    return _("seed {seed} of {scenario}").format(
        seed=failure.seed, scenario=visible(failure.scenario)
    )


def on_the_page(told: Told) -> str:
    """The heading over where a post is."""
    if any(map(is_gone, told.page)):
        return _("On the page (of the sandbox, which is gone now)")
    return _("On the page")


def is_gone(text: str) -> bool:
    """Whether an address in it is of a sandbox, which went with its rehearsal."""
    return _OWN.search(text) is not None


def post(told: Told) -> str:
    """Which post it is."""
    return _("Post {key}").format(key=visible(told.key))
