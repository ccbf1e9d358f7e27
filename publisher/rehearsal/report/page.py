"""A report as one page: it needs nothing beside it, runs nothing, and asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from publisher.rehearsal.report import phrases
from publisher.rehearsal.report.machine import log_names
from publisher.rehearsal.report.markup import Inside, Markup, link, tag, together
from publisher.rehearsal.report.phrases import MARKS
from publisher.rehearsal.report.report import WORDS, Failure, Outcome, Reached, Report, Told
from publisher.rehearsal.scenarios import SCENARIOS
from publisher.words import N_, _, language, many

_STYLE: Final = Markup(Path(__file__).with_name("page.css").read_text(encoding="utf-8"))
_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
)
_FROM_THE_RIGHT: Final = frozenset({"ar", "ckb", "fa", "he", "ps", "sd", "ug", "ur", "yi"})
_OPEN: Final = 3
"""Failures that are open when the page is: what broke first explains most of the rest."""
_SHORT: Final = 5
"""Rules, and things never met, that are shown at once."""
_BADGES: Final = {Outcome.KEPT: "good", Outcome.BROKEN: "bad", Outcome.TOO_LITTLE: "few"}
_HELD: Final = {True: "yes", False: "no", None: "none"}
_BESIDE: Final = {
    "restored": N_("Backups are put back and databases cloned: the journal itself goes back."),
    "smoke": N_("A few posts on a real page, which are deleted again."),
}
"""What scenarios are about that are not among ``SCENARIOS``."""
_ADDRESS: Final = re.compile(r"https?://\S+")


def as_html(report: Report) -> str:
    """The page."""
    lang = language()
    side = "rtl" if lang.partition("-")[0] in _FROM_THE_RIGHT else "ltr"
    title = f"{phrases.title(report)}: {phrases.outcome(report)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", _STYLE),
    )
    body = tag("body", _header(report), tag("main", *_sections(report)), _footer())
    return f"<!doctype html>{tag('html', head, body, lang=lang, dir=side)}\n"


def _header(report: Report) -> Markup:
    badge = tag("span", phrases.outcome(report), class_=f"badge {_BADGES[report.outcome]}")
    said = tag("bdi", f"{report.began[:16].replace('T', ' ')} UTC", dir="ltr")
    began = tag("time", said, datetime=report.began)
    lasted = _("took {time}").format(time=phrases.lasted(report.seconds))
    about = (together((" · ", tag("bdi", part))) for part in phrases.about(report))
    reasons = phrases.reasons(report)
    return tag(
        "header",
        tag("div", tag("h1", phrases.title(report)), badge, class_="title"),
        tag("p", began, *about, f" · {lasted}", class_="about soft"),
        tag("ul", *(tag("li", why) for why in reasons), class_=f"why {_BADGES[report.outcome]}")
        if reasons
        else None,
    )


def _footer() -> Markup:
    files = tag("bdi", "junit.xml · report.json", dir="ltr")
    return tag("footer", tag("p", _("The same for programs:"), " ", files))


def _sections(report: Report) -> Iterator[Markup]:
    if report.failures:
        yield _failures(report)
    if report.left_behind:
        yield _left_behind(report.left_behind)
    yield _table(report)
    if report.checklist:
        yield _checklist(report)
    if report.settled or report.unsettled:
        yield _settled(report)
    if report.reached:
        yield _reached(report)
    yield _proof(report)
    yield _scenarios(report)
    yield _section(_("What it is worth"), tag("p", phrases.bound(report.bound)))
    if report.notes:
        yield _section(
            _("Notes"), tag("ul", *(tag("li", note, dir="auto") for note in report.notes))
        )


def _section(title: str, *inside: Inside, class_: str | None = None) -> Markup:
    return tag("section", tag("h2", title), *inside, class_=class_)


# What broke


def _failures(report: Report) -> Markup:
    named = zip(report.failures, log_names(report), strict=True)
    told = (_failure(one, log, is_open=number < _OPEN) for number, (one, log) in enumerate(named))
    title = many("{n} schedule broke a rule", "{n} schedules broke a rule", len(report.failures))
    return _section(title, *told, class_="wrong")


def _failure(failure: Failure, log: str | None, *, is_open: bool) -> Markup:
    first = failure.rules[0].partition("\n")[0] if failure.rules else ""
    summary = tag(
        "summary",
        tag("strong", phrases.name(failure)),
        tag("span", tag("bdi", f"{first[:160]}{'…' if len(first) > 160 else ''}"), class_="first"),
    )
    told_of = {told.rule for told in failure.stories}
    struck = failure.struck or (_("nothing"),)
    inside = (
        *(part for told in failure.stories for part in _told(told)),
        *_rules([rule for rule in failure.rules if rule not in told_of]),
        tag("h3", _("Struck")),
        _lines(struck),
        tag("h3", _("Run it again")),
        tag("code", failure.replay, class_="command", dir="ltr"),
        tag("p", tag("a", tag("bdi", log), href=log), class_="soft") if log else None,
    )
    return tag("details", summary, tag("div", *inside, class_="inner"), open=is_open)


def _told(told: Told) -> Iterator[Markup]:
    yield tag("h3", tag("bdi", phrases.post(told)))
    yield _rule(told.rule)
    page = tag("div", tag("h3", phrases.on_the_page(told)), _lines(told.page or (_("nothing"),)))
    journal = tag("div", tag("h3", _("In the journal")), _lines(told.journal or (_("nothing"),)))
    yield tag("div", page, journal, class_="beside")


def _rules(rules: Sequence[str]) -> Iterator[Markup]:
    yield from map(_rule, rules[:_SHORT])
    if more := rules[_SHORT:]:
        count = many("{n} more rule", "{n} more rules", len(more))
        yield tag("details", tag("summary", count), *map(_rule, more), class_="more")


def _rule(rule: str) -> Markup:
    first, *trace = phrases.paragraph(rule) or [""]
    rest = Markup("\n").join(map(_escaped, trace))
    return tag(
        "div",
        tag("div", f"{MARKS[False]} ", tag("bdi", first)),
        tag("pre", Markup(rest), class_="trace") if trace else None,
        class_="rule bad",
    )


def _escaped(line: str) -> Markup:
    return together([line])


def _lines(lines: Iterable[str]) -> Markup:
    return tag("ul", *(tag("li", _followed(line)) for line in lines), class_="lines", dir="ltr")


def _followed(line: str) -> Markup:
    """The line, with its addresses to follow, but those of a sandbox that is gone."""
    parts: list[Inside] = []
    at = 0
    for found in _ADDRESS.finditer(line):
        parts += [line[at : found.start()]]
        parts += [found[0] if phrases.is_gone(found[0]) else link(found[0])]
        at = found.end()
    return together([*parts, line[at:]])


def _left_behind(links: Sequence[str]) -> Markup:
    title = many(
        "{n} post is still on a real page", "{n} posts are still on a real page", len(links)
    )
    return _section(
        title,
        tag("p", _("They could not be taken down. Delete them on the page, by hand.")),
        tag("ul", *(tag("li", link(one)) for one in links), class_="left"),
        class_="wrong",
    )


# What held


def _table(report: Report) -> Markup:
    counts = report.counts
    posts = (
        (counts.get("approved", 0), _("approved")),
        (counts.get("on the page", 0), _("on the page")),
        (counts.get("live in the journal", 0), _("live in the journal")),
        (counts.get("in doubt", 0), _("may be live")),
    )
    words = [*WORDS, *(word for word in report.rules if word not in WORDS)]
    rules = (
        _tile(f"{count:,}", phrases.rule(word), phrases.gloss(word), "bad" if count else "good")
        for word in words
        for count in (report.rules.get(word, 0),)
    )
    beside = ", ".join(phrases.elsewhere(report)) or _("none")
    return _section(
        _("Page against journal"),
        tag("ul", *(_tile(f"{n:,}", what) for n, what in posts), class_="tiles"),
        tag("ul", *rules, class_="tiles"),
        tag("p", _("not on the page: {what}").format(what=beside), class_="soft"),
        tag("p", phrases.lied(report), class_="soft") if report.lied else None,
    )


def _tile(number: str, what: str, gloss: str = "", class_: str | None = None) -> Markup:
    small = tag("small", gloss) if gloss else None
    return tag("li", tag("strong", number), what, small, class_=class_)


def _checklist(report: Report) -> Markup:
    rows = []
    for one in report.checklist:
        held, count = phrases.check(one)
        rows.append(
            tag("tr", _mark(held=held), tag("td", _(one.says)), tag("td", count, class_="number"))
        )
    return _section(_("Before you adopt"), _grid((), rows, _("Before you adopt")))


def _mark(*, held: bool | None) -> Markup:
    said = {True: _("held"), False: _("not held"), None: _("no case")}[held]
    mark = tag("span", MARKS[held], role="img", aria_label=said, class_=_HELD[held])
    return tag("td", mark, class_="mark")


def _settled(report: Report) -> Markup:
    rows = [
        tag(
            "tr",
            _mark(held=one.is_enough),
            tag("td", _("all") if one.platform == "all" else one.platform),
            tag("td", f"{one.count:,} / {one.of:,}", class_="number"),
            tag("td", f"{100 * one.count / one.of:.1f} %" if one.of else "-", class_="number"),
        )
        for one in report.settled
    ]
    rest = [tag("li", f"{n:,} · ", tag("bdi", why)) for why, n in report.unsettled.items()]
    title = _("Doubts that settled by themselves")
    return _section(
        title,
        _grid((), rows, title) if rows else None,
        tag("h3", _("The rest")) if rest else None,
        tag("ul", *rest) if rest else None,
    )


def _reached(report: Report) -> Markup:
    heads = ("", _("What there is"), _("Met"), "", _("Never met"))
    rows = (_met(one) for one in report.reached)
    return _section(_("Reached"), _grid(heads, rows, _("Reached"), numbers=(2,)))


def _met(one: Reached) -> Markup:
    bar = tag("progress", value=one.count, max=max(one.of, 1), aria_label=_(one.what))
    return tag(
        "tr",
        _mark(held=not one.missing),
        tag("th", _(one.what), scope="row"),
        tag("td", f"{one.count:,} / {one.of:,}", class_="number"),
        tag("td", bar, class_="bar"),
        tag("td", _never_met(one), class_="text"),
    )


def _never_met(one: Reached) -> Inside:
    if not one.missing:
        spared = one.of - one.count
        said = many("{n}, which need not be", "{n}, which need not be", spared) if spared else "–"
        return tag("span", said, class_="soft")
    names = _lines(one.missing)
    if len(one.missing) <= _SHORT:
        return names
    count = many("{n} thing", "{n} things", len(one.missing))
    return tag("details", tag("summary", count), names)


def _proof(report: Report) -> Markup:
    title = _("Can it fail?")
    if report.proof is None:
        return _section(title, tag("p", phrases.not_proved(), class_="soft"))
    rows = [
        tag(
            "tr",
            _mark(held=said is not None),
            tag("th", name, scope="row"),
            tag("td", tag("bdi", said) if said else _("got through"), class_="text"),
        )
        for name, said in sorted(report.proof.items(), key=lambda item: item[1] is not None)
    ]
    heads = ("", _("Broken variant"), _("Caught at"))
    table = tag(
        "details",
        tag("summary", phrases.caught(report.proof)),
        _grid(heads, rows, title),
        open=bool(report.through),
    )
    return _section(title, table, class_="wrong" if report.through else None)


def _scenarios(report: Report) -> Markup:
    heads = [_("Scenario"), _("Seeds"), _("Schedules"), _("Faults"), _("Broken"), _("Time")]
    rows = []
    for ran in report.ran:
        scenario = SCENARIOS.get(ran.scenario)
        about = scenario.says if scenario else _BESIDE.get(ran.scenario, "")
        numbers = (
            phrases.span(ran), f"{ran.schedules:,}", f"{ran.faults:,}", f"{ran.broken:,}",
            phrases.lasted(ran.seconds),
        )  # fmt: skip
        rows.append(
            tag(
                "tr",
                tag("th", ran.scenario, _small(about), scope="row", class_="what"),
                *(tag("td", number, class_="number") for number in numbers),
            )
        )
    return _section(_("What ran"), _grid(heads, rows, _("What ran"), numbers=range(1, 6)))


def _small(text: str) -> Markup | None:
    return tag("small", _(text), class_="soft") if text else None


def _grid(
    heads: Sequence[str], rows: Iterable[Markup], name: str, *, numbers: Iterable[int] = ()
) -> Markup:
    """A table that scrolls inside its box; ``numbers``: columns of them."""
    head = (
        tag("th", text, scope="col", class_="number" if at in numbers else None)
        if text
        else tag("td", class_="bar" if at else None)
        for at, text in enumerate(heads)
    )
    top = tag("thead", tag("tr", *head)) if heads else None
    table = tag("table", top, tag("tbody", *rows))
    return tag("div", table, class_="box", tabindex=0, role="region", aria_label=name)
