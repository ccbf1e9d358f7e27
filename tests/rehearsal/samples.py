"""Reports as rehearsals make them: kept, broken, proving too little, and with posts left."""

from __future__ import annotations

from dataclasses import replace

from publisher.rehearsal.report.report import (
    Bound,
    Check,
    Failure,
    Ran,
    Reached,
    Report,
    Settled,
    Told,
)

SCRIPT = "<script>alert('post')</script>"
RTL = "برنامهٔ قطع برق این هفته \u202eabc"
NUL = "zero \x00 bell \x07 escape \x1b[31m"

JOURNAL = (
    "14:02:00.120411  claimed        attempt 1  worker run w-3",
    "14:02:00.912001  begun          attempt 1  worker run w-3",
    '14:02:01.030118  rescued        attempt 1  worker run w-4  {"from": "sending"}',
    "14:02:01.402233  claimed        attempt 2  worker run w-4",
    "14:02:01.633100  begun          attempt 2  worker run w-4",
    '14:02:01.894001  published      attempt 2  worker run w-4  {"remote_id": "101_502"}',
)  # fmt: skip


def kept() -> Report:
    return Report(
        run=41,
        version="0.1.0",
        commit="4c1d2e8800aa",
        server="PostgreSQL 18.1 embedded",
        began="2026-12-07T02:00:00+00:00",
        seconds=347.2,
        ran=[
            Ran("two-workers", 1, 3, 3, 12, 0, 9.4),
            Ran("server-stopped", 1, 22, 22, 88, 0, 71.25),
            Ran("backlog", 1, 3, 3, 9, 0, 14.0),
            Ran("random", 1, 50, 50, 429, 0, 180.5),
            Ran("restored", 1, 7, 7, 7, 0, 61.0),
        ],
        counts={
            "approved": 3214, "on the page": 2961, "live in the journal": 2920, "in doubt": 41,
            "failed": 201, "missed": 38, "cancelled": 14, "jobs": 3214, "attempts": 5870,
        },
        rules={"duplicates": 0, "lost": 0, "unreported": 0, "false success": 0},
        lied=3,
        settled=[Settled("all", 397, 401, True), Settled("bluesky", 44, 44, True)],
        unsettled={"no evidence on that platform (telegram)": 52, "two equal texts (mastodon)": 5},
        checklist=[
            Check("one id through every try", 3214, 3214),
            Check("one job, two workers: the second lets go", 112, 112),
            Check("a timeout never reads as not posted", 297, 297),
            Check("cut after sending", 301, 301),
            Check("server stopped midway", 46, 46),
        ],
        reached=[
            Reached("crash points", 110, 110),
            Reached("faults at them", 360, 365),
            Reached("platform behaviours", 39, 39),
            Reached("changes of state", 25, 25),
            Reached("acts of people", 17, 17),
        ],
        proof={f"broken variant {number}": "duplicate: two on the page" for number in range(1, 23)},
        bound=Bound(1200, 18_214, 0),
    )  # fmt: skip


def broken() -> Report:
    report = kept()
    report.failures = [
        Failure(
            "random", 217,
            ("duplicate: c217-3 is published (None), 2 on the page; attempts: 1 superseded",),
            ("publish: all of it (at) kill", "begin (after) cut"),
            (
                Told(
                    "c217-3",
                    "duplicate: c217-3 is published (None), 2 on the page; attempts: 1 superseded",
                    (
                        "14:02:00.980000  http://127.0.0.1:8801/101_501",
                        "14:02:01.800000  http://127.0.0.1:8801/101_502  taken down since",
                    ),
                    JOURNAL,
                ),
            ),
            "publisher rehearse replay 217", log="worker w-3: started\nworker w-3: killed\n",
        ),
        Failure(
            "two-workers", 217,
            (f"audit: not as approved: {SCRIPT} for {RTL}", f"w-1 broke: Traceback\n  {NUL}"),
            (), (), "publisher rehearse replay 217 --scenario two-workers", log=NUL,
        ),
    ]  # fmt: skip
    report.rules = {**report.rules, "duplicates": 1, "other": 2}
    report.ran[3] = replace(report.ran[3], broken=1)
    report.ran[0] = replace(report.ran[0], broken=1)
    report.proof = {**(report.proof or {}), "fence by number": None}
    report.bound = Bound(1200, 18_214, 2)
    report.notes = ["The relay stood in for the server, which is not ours to stop."]
    return report


def too_little() -> Report:
    report = kept()
    report.ran = report.ran[3:4]
    report.proof = None
    report.reached[0] = Reached("crash points", 108, 110, ("before rest (database)", "spool write"))
    report.reached[3] = Reached("changes of state", 24, 25, ("unknown → dropped",))
    report.checklist[1] = Check("one job, two workers: the second lets go", 0, 0)
    report.checklist[4] = Check("server stopped midway", 44, 46)
    return report


def left_behind() -> Report:
    report = kept()
    report.ran = [Ran("smoke", 7, 7, 1, 4, 0, 40.0)]
    report.server = "PostgreSQL 15.14, given"
    report.counts = {"approved": 4, "on the page": 4, "live in the journal": 4}
    report.reached, report.checklist, report.settled, report.unsettled = [], [], [], {}
    report.proof, report.bound, report.lied = None, Bound(1, 2, 0), 0
    report.left_behind = [
        "https://www.facebook.com/101/posts/501",
        f"https://page.example/post?a=1&b={SCRIPT}",
        "javascript:alert(1)",
    ]
    return report
