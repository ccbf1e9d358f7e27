"""Whose turn it is: rules, triggers, chance, and the control calls that set them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from publisher.sandbox.behaviours import Behaviour, Endpoint
from publisher.sandbox.control import ControlRefused
from publisher.sandbox.plan import Chaos, Plan, Rule, Target, Treatment

if TYPE_CHECKING:
    from .conftest import PageUnderTest


def _target(message: str = "x", page: str = "101") -> Target:
    return Target(page, Endpoint.FEED, publishes=True, message=message)


def _treat(plan: Plan, target: Target) -> Behaviour:
    return plan.treat(target, possible=lambda _: True).behaviour


def test_a_rule_skips_then_acts_then_is_used_up() -> None:
    plan = Plan()
    plan.add([Rule(Behaviour.DROP, after=1, times=2)])
    assert [_treat(plan, _target()) for _ in range(4)] == ["answer", "drop", "drop", "answer"]
    assert plan.to_json()[0] | {"seen": 3, "used": 2} == plan.to_json()[0]


def test_a_rule_is_about_its_page_its_endpoint_and_its_text() -> None:
    plan = Plan()
    plan.add([Rule(Behaviour.DROP, page="102", endpoint=Endpoint.FEED, match="ab", times=None)])
    assert _treat(plan, _target("abc", "102")) == "drop"
    assert _treat(plan, _target("abc", "101")) == "answer"
    assert _treat(plan, _target("acb", "102")) == "answer"
    photo = Target("102", Endpoint.PHOTOS, publishes=False, message="abc")
    assert _treat(plan, photo) == "answer"


def test_a_rule_that_cannot_be_done_waits_for_its_turn() -> None:
    plan = Plan()
    plan.add([Rule(Behaviour.OLDER_ID), Rule(Behaviour.DROP)])
    able = plan.treat(_target(), possible=lambda behaviour: behaviour is not Behaviour.OLDER_ID)
    assert able.behaviour is Behaviour.DROP
    assert _treat(plan, _target()) == "older-id"


def test_text_triggers_by_name() -> None:
    plan = Plan()

    def treat(text: str) -> Treatment:
        return plan.treat(_target(text), possible=lambda _: True)

    assert treat("Buy #sandbox:lose-answer now") == Treatment(Behaviour.LOSE_ANSWER)
    assert treat("#sandbox:accept-late=2.5") == Treatment(Behaviour.ACCEPT_LATE, 2.5)
    assert treat("#sandbox:accept-late") == Treatment(Behaviour.ACCEPT_LATE, 5.0)
    assert treat("#sandbox:nonsense") == Treatment()
    assert [treat("#sandbox:drop*1").behaviour for _ in range(2)] == ["drop", "answer"]
    assert _treat(Plan(triggers=False), _target("#sandbox:drop")) == "answer"


def test_chance_is_repeatable_and_keeps_its_rate() -> None:
    runs = [
        [_treat(plan, _target(f"text {number % 400}")) for number in range(800)]
        for plan in (Plan(chaos=Chaos.parse("7:0.25")), Plan(chaos=Chaos.parse("7:0.25")))
    ]
    assert runs[0] == runs[1]
    counts = Counter(runs[0])
    assert 0.18 < 1 - counts[Behaviour.ANSWER] / 800 < 0.32
    assert counts[Behaviour.REFUSE_TOKEN] == counts[Behaviour.LISTING_GAP] == 0
    assert len(counts) > 25
    assert runs[0] != [_treat(Plan(chaos=Chaos(8)), _target(f"text {n % 400}")) for n in range(800)]


@pytest.mark.parametrize("text", ["", "x", "1:2", "1:-1", "1:x"])
def test_a_seed_amiss_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Chaos.parse(text)


def test_plans_are_set_shown_and_dropped_by_control_calls(page: PageUnderTest) -> None:
    page.control.plan([{"behaviour": "drop", "page": page.id, "times": None, "match": "no"}])
    assert page.raw("no").data == b""
    assert page.raw("yes").status == 200
    assert page.control.rules()[0]["used"] == 1
    page.control.heal()
    assert (page.control.rules(), page.raw("no").status) == ([], 200)


def test_chance_is_set_by_a_control_call(page: PageUnderTest) -> None:
    page.control.chaos(1, 1.0, only=["drop"])
    assert page.raw("by chance").data == b""
    page.control.heal()
    assert page.raw("by chance").status == 200


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"behaviour": "explode"}, "no behaviour 'explode'"),
        ({"behaviour": "drop", "tims": 1}, "no 'tims'"),
        ({}, "behaviour"),
        ({"behaviour": "drop", "endpoint": "stories"}, "stories"),
    ],
)
def test_a_rule_amiss_is_refused(page: PageUnderTest, rule: dict[str, object], says: str) -> None:
    with pytest.raises(ControlRefused, match=says):
        page.control.plan([rule])


def test_control_calls_must_be_json(page: PageUnderTest) -> None:
    assert page.client.post("/_control/plan", data={"behaviour": "drop"}).status_code == 415
    assert page.client.get("/_control/nothing").status_code == 404


def test_a_delay_is_set_for_every_answer(page: PageUnderTest) -> None:
    page.control.delay(150)
    received = page.raw("Delayed")
    page.control.delay(0)
    assert received.seconds >= 0.15


def test_pages_are_added_many_at_once(page: PageUnderTest) -> None:
    made = page.control.add_pages(5)
    assert [item["id"] for item in made] == ["101", "102", "103", "104", "105"]
    assert made[1] == {"id": "102", "name": "Page B", "token": "sandbox-token-102"}
    assert {item["id"] for item in page.control.pages()} >= {"101", "105", page.id}
    given = {"access_token": "sandbox-token-105", "message": "On a new page"}
    assert page.client.post("/105/feed", data=given).status_code == 200
    assert page.control.posts("105")[0]["message"] == "On a new page"
