"""A permit is one write, in time; a registry has one adapter for each platform."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest

from publisher.engine.adapter import SendPermit, boottime
from publisher.engine.errors import NotFound, PermitLate, PermitUsed
from publisher.engine.job import JobId, Token
from publisher.engine.registry import Registry
from tests.engine.platform import Fake


def permit(window: float = 60.0) -> SendPermit:
    return SendPermit(
        job_id=JobId(1), token=Token(UUID(int=1)), attempt=1, channel_id=1,
        content_sha256=b"x" * 32, deadline=boottime() + window, budget=5.0,
    )  # fmt: skip


def test_one_permit_is_one_write() -> None:
    one = permit()
    one.use()
    assert one.used
    with pytest.raises(PermitUsed):
        one.use()


def test_a_permit_names_what_it_is_for() -> None:
    one = permit()
    assert (one.job_id, one.token, one.attempt, one.channel_id) == (1, UUID(int=1), 1, 1)
    assert (one.content_sha256, one.budget, one.used) == (b"x" * 32, 5.0, False)


def test_a_late_permit_writes_nothing() -> None:
    one = permit(window=0.0)
    with pytest.raises(PermitLate):
        one.use()
    assert not one.used


def test_a_permit_taken_back_proves_that_nothing_was_written() -> None:
    one = permit()
    assert one.revoke()
    assert one.revoke()
    with pytest.raises(PermitLate):
        one.use()
    assert not one.used


def test_a_used_permit_cannot_be_taken_back() -> None:
    one = permit()
    one.use()
    assert not one.revoke()
    assert one.used


def use(one: SendPermit, start: threading.Barrier, won: list[str]) -> None:
    start.wait(10)
    try:
        one.use()
    except (PermitLate, PermitUsed):
        return
    won.append("used")


def take_back(one: SendPermit, start: threading.Barrier, won: list[str]) -> None:
    start.wait(10)
    if one.revoke():
        won.append("revoked")


def test_of_many_that_use_or_take_back_one_wins() -> None:
    for _ in range(50):
        one = permit()
        start = threading.Barrier(4)
        won: list[str] = []

        threads = [
            threading.Thread(target=work, args=(one, start, won))
            for work in (use, use, take_back, take_back)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(won) in ({"used"}, {"revoked"})
        assert won.count("used") == one.used


def test_a_registry_knows_its_platforms() -> None:
    registry = Registry([Fake(platform="b"), Fake(platform="a")])
    assert registry.platforms == ("a", "b")
    assert registry.adapter("a").platform == "a"
    with pytest.raises(NotFound, match="Known: a, b"):
        registry.adapter("c")
    with pytest.raises(NotFound, match="Known: none"):
        Registry([]).adapter("c")


def test_two_adapters_for_one_platform_are_refused() -> None:
    with pytest.raises(ValueError, match="two adapters for fake"):
        Registry([Fake(), Fake()])
