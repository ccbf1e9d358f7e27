"""Reports as files: for a browser, for CI, for programs, and the folder they lie in."""

from __future__ import annotations

import json
import multiprocessing
import re
from collections import Counter
from html.parser import HTMLParser
from multiprocessing.synchronize import Barrier
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from publisher.rehearsal.report import folder, junit, machine, page
from publisher.rehearsal.report.markup import link, tag
from publisher.rehearsal.report.report import Failure, Report, Told
from tests.rehearsal import samples

REPORTS = {
    "kept": samples.kept,
    "broken": samples.broken,
    "too little": samples.too_little,
    "left behind": samples.left_behind,
}
_start: Barrier
EVERY = pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)


def hostile() -> Report:
    """A report into every text of which somebody has written what they could."""
    text = f"{samples.SCRIPT} \"' ]]> & {samples.NUL} {samples.RTL} \ud800 \ufffe"
    report = samples.broken()
    told = Told(text, text, (f"https://x.example/{text}", text), (text,))
    report.failures = [
        Failure("random", 1, (text, text + "\n" + text), (text,), (told,), text, text)
    ]
    report.server = report.commit = text
    report.notes, report.left_behind = [text], [text, f"https://x.example/?{text}"]
    report.proof = {text: text, text + "2": None}
    report.unsettled = {text: 1}
    report.reached = [type(one)(one.what, 0, 1, (text,)) for one in report.reached]
    return report


# For a browser


class Reader(HTMLParser):
    """What a browser would find: elements, their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


@EVERY
def test_the_page_is_whole_and_needs_nothing_beside_it(make: type[Report]) -> None:
    html = page.as_html(make())
    read = Reader(html)
    assert read.open == []
    assert not {"script", "img", "link", "iframe", "form", "base"} & set(read.tags)
    assert not [name for name, _ in read.attributes if name.startswith("on") or name == "style"]
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert ("lang", "en") in read.attributes
    assert ("dir", "ltr") in read.attributes
    assert "url(" not in html


@EVERY
def test_the_page_says_how_it_ended(make: type[Report]) -> None:
    report = make()
    word = {0: "PASSED", 1: "FAILED", 3: "PROVES TOO LITTLE"}[report.exit_code]
    assert f"Rehearsal 41{word}" in Reader(page.as_html(report)).text


def test_nothing_that_was_posted_becomes_part_of_the_page() -> None:
    kept, read = Reader(page.as_html(samples.broken())), Reader(page.as_html(hostile()))
    assert read.open == []
    assert "script" not in read.tags
    assert "alert('post')" in read.text
    assert {name for name, _ in read.attributes} <= {name for name, _ in kept.attributes} | {"rel"}
    page.as_html(hostile()).encode()
    assert not {"\x00", "\x1b", "\u202e"} & set(read.text)


def test_only_addresses_of_the_web_are_links() -> None:
    assert link("https://page.example/1").startswith("<a ")
    for address in ("javascript:alert(1)", "data:text/html,x", "//page.example", "http:/x", "[::"):
        assert "<a" not in link(address)
    read = Reader(page.as_html(samples.left_behind()))
    addresses = [value for name, value in read.attributes if name == "href"]
    assert len(addresses) == 2
    assert all(address and address.startswith("https://") for address in addresses)


def test_a_sandbox_that_is_gone_is_not_linked() -> None:
    addresses = re.findall(r'href="([^"]+)"', page.as_html(samples.broken()))
    assert addresses == ["seed-217.log", "seed-217-2.log"]


def test_what_broke_stands_before_the_table() -> None:
    text = Reader(page.as_html(samples.broken())).text
    assert text.index("2 schedules broke a rule") < text.index("Page against journal")
    assert text.index("publisher rehearse replay 217") < text.index("Page against journal")


def test_text_and_attributes_are_escaped() -> None:
    assert tag("p", "<b> & 'c'", title='"x"') == (
        '<p title="&quot;x&quot;">&lt;b&gt; &amp; &#x27;c&#x27;</p>'
    )


# For CI


def suites(report: Report) -> dict[str, ET.Element]:
    root = ET.fromstring(junit.as_xml(report))
    assert root.tag == "testsuites"
    for counted in (root, *root):
        for word, path in (("tests", ".//testcase"), ("failures", ".//failure")):
            assert counted.get(word) == str(len(counted.findall(path)))
        assert counted.get("errors") == "0"
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(names) == len(set(names))
    return {suite.attrib["name"]: suite for suite in root}


@pytest.mark.parametrize("make", [*REPORTS.values(), hostile], ids=[*REPORTS, "hostile"])
def test_junit_fails_exactly_where_the_run_did_not_pass(make: type[Report]) -> None:
    report = make()
    failed = sum(len(suite.findall(".//failure")) for suite in suites(report).values())
    assert bool(failed) is bool(report.exit_code)


def test_junit_has_a_case_for_each_thing_and_the_time_of_each_scenario() -> None:
    report = samples.kept()
    found = suites(report)
    assert {name: len(suite.findall("testcase")) for name, suite in found.items()} == {
        "promises": 8, "checklist": 5, "reached": 5, "variants": 22, "scenarios": 5,
    }  # fmt: skip
    times = {case.get("name"): case.get("time") for case in found["scenarios"].iter("testcase")}
    assert times["server-stopped"] == "71.250"
    assert found["scenarios"].get("time") == "336.150"


def test_junit_tells_what_broke_and_how_to_run_it_again() -> None:
    found = suites(samples.broken())
    (random,) = (c for c in found["scenarios"] if c.get("name") == "random")
    failure = random.find("failure")
    assert failure is not None
    assert failure.get("type") == "broken"
    assert "seed 217 of random: duplicate: c217-3" in failure.attrib["message"]
    assert "publisher rehearse replay 217" in (failure.text or "")
    assert "http://127.0.0.1:8801/101_502" in (failure.text or "")
    failed = [c.get("name") for c in found["variants"] if c.find("failure") is not None]
    assert failed == ["fence by number"]


def test_junit_calls_what_was_not_met_coverage() -> None:
    found = suites(samples.too_little())
    kinds = {
        (suite, case.get("name")): failure.get("type")
        for suite, element in found.items()
        for case in element.iter("testcase")
        for failure in case.iter("failure")
    }
    assert kinds == {
        ("reached", "crash points"): "coverage",
        ("reached", "changes of state"): "coverage",
        ("checklist", "one job, two workers: the second lets go"): "coverage",
        ("checklist", "server stopped midway"): "coverage",
    }
    assert found["variants"].get("skipped") == "1"


# For programs


@EVERY
def test_json_comes_back_as_it_was(make: type[Report]) -> None:
    facts = machine.as_json(make())
    assert json.loads(json.dumps(facts)) == facts


def test_each_key_is_described_where_it_is_made() -> None:
    described = machine.__doc__ or ""
    assert [key for key in machine.as_json(samples.broken()) if key not in described] == []


def test_json_holds_what_the_report_does() -> None:
    facts = machine.as_json(samples.broken())
    assert facts["schema"] == 1
    assert facts["outcome"] == "broken"
    assert facts["exit_code"] == 1
    assert facts["rules"]["duplicates"] == 1
    assert facts["failures"][0]["posts"][0]["page"][1].endswith("taken down since")
    assert [failure["log"] for failure in facts["failures"]] == ["seed-217.log", "seed-217-2.log"]
    assert {"variant": "fence by number", "caught_at": None} in facts["proof"]
    assert machine.as_json(samples.kept())["bound"]["one_in"] == 6071


# The folder


def test_everything_is_written_and_named(tmp_path: Path) -> None:
    files = folder.write(hostile(), tmp_path / "rehearsals" / "41")
    assert [file.name for file in files] == ["index.html", "junit.xml", "report.json", "seed-1.log"]
    assert all(file.read_bytes() for file in files)
    assert json.loads(files[2].read_text())["run"] == 41
    assert files[0].read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_schedule_without_a_log_has_no_file(tmp_path: Path) -> None:
    report = samples.broken()
    report.failures = [Failure("smoke", 1, ("lost: x",), (), (), "replay")]
    assert len(folder.write(report, tmp_path)) == 3
    assert "href" not in page.as_html(report)


def test_runs_are_counted_on_whatever_else_lies_there(tmp_path: Path) -> None:
    home = tmp_path / "rehearsals"
    assert folder.next_run(home) == 1
    (home / "ledger.jsonl").touch()
    (home / "7").mkdir()
    (home / "8.bak").mkdir()
    assert folder.next_run(home) == 8
    assert (home / "8").is_dir()


def _meet(barrier: Barrier) -> None:
    global _start  # noqa: PLW0603 - a barrier reaches a process of a pool no other way
    _start = barrier


def _take(home: Path) -> list[int]:
    _start.wait()
    return [folder.next_run(home) for _ in range(150)]


def test_no_two_rehearsals_are_given_one_number(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(4, _meet, [context.Barrier(4)]) as processes:
        taken = processes.map(_take, [tmp_path / "rehearsals"] * 4, chunksize=1)
    numbers = [number for of_one in taken for number in of_one]
    assert sorted(numbers) == [*range(1, 601)]
