"""What is read for a check: channels that need reconnecting, and the pixels of pictures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from publisher.editorial import checks
from publisher.editorial.checks import Measures
from publisher.engine.content import Media, Post
from tests.engine.ground import Ground
from tests.postgres import Postgres


@pytest.fixture(scope="module")
def ground(pg: Postgres) -> Iterator[Ground]:
    with Ground.open(pg) as opened:
        yield opened


def test_channels_whose_gate_the_platform_closed(ground: Ground) -> None:
    one, two, three = (ground.lane().channel_id for _ in range(3))
    ground.sql(
        "UPDATE gates SET blocked_at = now(), blocked_reason = 'needs_reconnecting'"
        " WHERE channel_id IN (%s, %s)",
        one,
        three,
    )
    ground.sql("UPDATE gates SET paused_at = now(), paused_by = 't' WHERE channel_id = %s", two)
    with ground.app.engine.connect() as conn:
        assert checks.needing_reconnection(conn, [one, two]) == {one}
        assert checks.needing_reconnection(conn, []) == frozenset()


def test_pixels_of_what_is_kept(ground: Ground) -> None:
    known, bare, gone = ("a1" * 32, "b2" * 32, "c3" * 32)
    ground.sql("SET session_replication_role = replica")
    for name, width in ((known, 640), (bare, None)):
        ground.sql(
            "INSERT INTO media (sha256, type, size, width, height, frames) VALUES"
            " (decode(%s, 'hex'), 'image/png', 5, %s, %s, %s)",
            name, width, width, width and 1,
        )  # fmt: skip
    ground.sql("RESET session_replication_role")
    media = tuple(
        Media(kind="image", type="image/png", sha256=name)
        for name in (known, bare, gone, "none", "'" * 64, None)
    )
    with ground.app.engine.connect() as conn:
        found = checks.measured(conn, [Post("x", media=media), Post("y")])
        assert found == {known: Measures(640, 640), bare: Measures()}
        assert checks.measured(conn, [Post("x")]) == {}
