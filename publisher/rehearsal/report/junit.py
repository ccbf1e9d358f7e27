"""A report as JUnit XML, as GitHub's actions, GitLab and Jenkins read it.

Five suites. Names of cases are keys and stay as they are in any language, so that a reader can
follow one over runs; what they say is in the reader's. A case that fails says why by its type:
``broken``, ``coverage`` (it proves too little), ``variant`` or ``left behind``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from publisher.rehearsal.report import phrases, terminal
from publisher.rehearsal.report.phrases import visible
from publisher.rehearsal.report.report import WORDS, Failure, Ran, Report
from publisher.words import _, many

_NAME: Final = "publisher rehearse"


@dataclass(frozen=True, slots=True)
class _Case:
    """``kind`` and ``message``: of a failure; both empty where it passed."""

    name: str
    kind: str = ""
    message: str = ""
    text: str = ""
    seconds: float = 0.0
    is_skipped: bool = False


def as_xml(report: Report) -> bytes:
    """The document, in UTF-8."""
    suites = {name: [*cases(report)] for name, cases in _SUITES.items()}
    every = [case for cases in suites.values() for case in cases]
    root = Element("testsuites", {"name": f"{_NAME} {report.run}", **_counts(every)})
    del root.attrib["skipped"]  # which the schema that Jenkins reads by has on suites alone
    root.set("time", f"{report.seconds:.3f}")
    for name, cases in suites.items():
        if cases:
            root.append(_suite(name, cases, report))
    indent(root)
    written: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _suite(name: str, cases: list[_Case], report: Report) -> Element:
    suite = Element("testsuite", {"name": name, **_counts(cases)})
    suite.set("time", f"{sum(case.seconds for case in cases):.3f}")
    suite.set("timestamp", report.began[:19])
    facts = {"commit": report.commit, "server": report.server, "version": report.version}
    properties = SubElement(suite, "properties")
    for key, value in facts.items():
        SubElement(properties, "property", {"name": key, "value": visible(value)})
    for case in cases:
        suite.append(_case(name, case))
    return suite


def _case(suite: str, case: _Case) -> Element:
    about = {"classname": f"rehearse.{suite}", "name": visible(case.name)}
    element = Element("testcase", {**about, "time": f"{case.seconds:.3f}"})
    if case.is_skipped:
        SubElement(element, "skipped", {"message": visible(case.message)})
    elif case.kind:
        said = {"type": case.kind, "message": visible(case.message)}
        SubElement(element, "failure", said).text = case.text or visible(case.message)
    return element


def _counts(cases: list[_Case]) -> dict[str, str]:
    skipped = sum(case.is_skipped for case in cases)
    failed = sum(bool(case.kind) for case in cases)
    return {
        "tests": str(len(cases)), "failures": str(failed), "errors": "0", "skipped": str(skipped),
    }  # fmt: skip


# The suites


def _promises(report: Report) -> Iterator[_Case]:
    """The four words, and what a run must not leave undone."""
    text = "\n".join(
        line
        for failure in report.failures
        for line in (*map(_first, failure.rules), f"  {visible(failure.replay)}")
    )
    for word in (*WORDS, "other"):
        count = report.rules.get(word, 0)
        said = f"{phrases.rule(word)} {count:,}"
        yield _Case(word, "broken", said, text) if count else _Case(word)
    for one in report.settled:
        name = f"doubts settle by themselves: {one.platform}"
        yield _Case(name) if one.is_enough else _Case(name, "broken", phrases.settled(one))
    left = len(report.left_behind)
    said = many("{n} post is still on a real page", "{n} posts are still on a real page", left)
    links = "\n".join(map(visible, report.left_behind))
    name = "nothing is left behind"
    yield _Case(name, "left behind", said, links) if left else _Case(name)


def _checklist(report: Report) -> Iterator[_Case]:
    for one in report.checklist:
        said = f"{_(one.says)}: {phrases.check(one)[1]}"
        yield _Case(one.says) if one.is_met else _Case(one.says, "coverage", said)


def _reached(report: Report) -> Iterator[_Case]:
    for one in report.reached:
        if not one.missing:
            yield _Case(one.what)
            continue
        said = many("{n} was never met", "{n} were never met", len(one.missing))
        names = "\n".join(map(visible, one.missing))
        yield _Case(one.what, "coverage", f"{one.count:,}/{one.of:,}: {said}", names)


def _variants(report: Report) -> Iterator[_Case]:
    if report.proof is None:
        yield _Case("the proof that it can fail", message=phrases.not_proved(), is_skipped=True)
        return
    for name, caught in report.proof.items():
        said = _("a broken variant got through: {name}").format(name=name)
        yield _Case(name, "variant", said) if caught is None else _Case(name)


def _scenarios(report: Report) -> Iterator[_Case]:
    ran: dict[str, list[Ran]] = {}
    failed: dict[str, list[Failure]] = {}
    for one in report.ran:
        ran.setdefault(one.scenario, []).append(one)
    for failure in report.failures:
        failed.setdefault(failure.scenario, []).append(failure)
    for name in dict.fromkeys((*ran, *failed)):
        seconds = sum(one.seconds for one in ran.get(name, ()))
        failures = failed.get(name, [])
        if not failures:
            yield _Case(name, seconds=seconds)
            continue
        said = "; ".join(f"{phrases.name(one)}: {_first(one.rules[0])}" for one in failures[:3])
        text = "\n".join(terminal.failures(failures))
        yield _Case(name, "broken", said, text, seconds)


def _first(rule: str) -> str:
    return visible(rule.partition("\n")[0])


_SUITES: Final[dict[str, Callable[[Report], Iterator[_Case]]]] = {
    "promises": _promises,
    "checklist": _checklist,
    "reached": _reached,
    "variants": _variants,
    "scenarios": _scenarios,
}
