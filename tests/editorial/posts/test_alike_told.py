"""What is like a post on its channel is told at save, approval and scheduling: only told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from publisher.editorial import channel_rules
from publisher.editorial.channel_rules import Change
from publisher.editorial.documents import Document, Variant
from publisher.editorial.examination import ChannelProblem, PostRefused
from publisher.engine.adapter import Severity
from publisher.engine.content import Media, Post
from publisher.engine.job import Channel, State
from tests.editorial.posts.conftest import DAY, Desk
from tests.engine.ground import Lane, lost

NOTICE = "The library in Lê Lợi street opens at nine on Saturday, and the reading room at ten."


def alike(found: tuple[ChannelProblem, ...]) -> list[tuple[int | None, str, str]]:
    assert all(not one.stands_in_the_way for one in found)
    return [
        (one.channel_id, one.problem.code, one.problem.what)
        for one in found
        if one.problem.code.startswith("alike")
    ]


def day(of: datetime) -> str:
    local = of.astimezone(ZoneInfo("UTC"))
    return f"{local.day} {local:%b}"


@pytest.mark.parametrize("state", [State.SCHEDULED, State.PUBLISHED, State.UNKNOWN])
def test_it_is_told_at_every_step_and_stops_none(desk: Desk, state: State) -> None:
    page, other = desk.page(), desk.page()
    due = -timedelta(minutes=1)
    first, (job,) = desk.out(page, text=NOTICE, due=due)
    if state is not State.SCHEDULED:
        desk.send(page, job, lost() if state is State.UNKNOWN else None)
    words = {
        State.SCHEDULED: "a post scheduled here for",
        State.PUBLISHED: "a post live here on",
        State.UNKNOWN: "a post that may be live here since",
    }[state]
    today = day(datetime.now(UTC) + due)
    told = [(page.channel_id, "alike-twin", f"The same text as {words} {today}.")]
    second = desk.new(page, other, text=NOTICE.upper())
    saved = desk.save(second, Document(Post(f"{NOTICE} ")))
    assert alike(saved.problems) == told
    assert alike(desk.approve(second).problems) == told
    done = desk.schedule(second, page, other)
    assert alike(done.problems) == told
    assert len(done.jobs) == 2
    # A post is not like itself.
    assert alike(desk.save(first, NOTICE + " ").problems) != []
    assert all("scheduled" in what for _, _, what in alike(desk.save(first, NOTICE).problems))


def test_texts_and_photos_are_compared_apart(desk: Desk) -> None:
    page = desk.page()
    desk.out(page, text=NOTICE)
    photo = Media("image", "image/png", "a door", url="https://example.com/door.png")
    post = desk.new(page, text=NOTICE)
    saved = desk.save(post, Document(Post(NOTICE, None, (photo,))))
    ((_, code, what),) = alike(saved.problems)
    assert code == "alike"
    assert what.startswith("The same text as a post scheduled here for ")
    assert what.endswith(", other photos.")
    near = desk.save(post, NOTICE.replace("nine", "eight"))
    ((_, code, what),) = alike(near.problems)
    assert (code, what[:5]) == ("alike", "95 % ")


def test_it_is_looked_for_around_the_time_that_it_is_scheduled_for(desk: Desk) -> None:
    page = desk.page()
    desk.out(page, text=NOTICE, due=90 * DAY, useful_for=DAY)
    post = desk.new(page, text=NOTICE)
    assert alike(desk.approve(post).problems) == []
    done = desk.schedule(post, page, due=89 * DAY)
    assert len(alike(done.problems)) == 1
    # And is known where a time was stored.
    assert len(alike(desk.save(post, f"{NOTICE}\n").problems)) == 1


def test_the_form_of_a_channel_is_what_is_compared(desk: Desk) -> None:
    page, other = desk.page(), desk.page()
    desk.out(page, other, text=NOTICE)
    post = desk.new(page, other, text=NOTICE)
    own = {page.channel_id: Variant.of(text="Something else altogether, about the swimming pool")}
    saved = desk.save(post, Document(Post(NOTICE), None, own))
    assert [channel for channel, _, _ in alike(saved.problems)] == [other.channel_id]


# Alt texts


def wants(desk: Desk, page: Lane, *, alt_text: bool) -> None:
    with desk.transaction() as conn:
        channel = Channel(page.channel_id, "stub", "page", "r", None, None, 1, trusted=False)
        rules = channel_rules.change(conn, channel, Change(alt_text=alt_text), who="w")
        assert rules.alt_text is alt_text


def test_a_channel_that_wants_alt_texts_has_them_before_an_approval(desk: Desk) -> None:
    page, other = desk.page(), desk.page()
    wants(desk, page, alt_text=True)
    photo = Media("image", "image/png", "", url="https://example.com/door.png")
    document = Document(Post("A door", None, (photo,)))
    post = desk.new(page, other, text="A door")
    found = [one for one in desk.save(post, document).problems if one.problem.code == "alt-missing"]
    assert [(one.channel_id, one.problem.severity) for one in found] == [
        (page.channel_id, Severity.FIX),
        (other.channel_id, Severity.NOTE),
    ]
    with pytest.raises(PostRefused) as refused:
        desk.approve(post)
    assert (refused.value.code, refused.value.field) == ("alt-missing", "media.1.alt")
    described = Media("image", "image/png", "a door", url="https://example.com/door.png")
    desk.save(post, Document(Post("A door", None, (described,))))
    desk.approve(post)
    desk.save(post, document)
    wants(desk, page, alt_text=False)
    desk.approve(post)
