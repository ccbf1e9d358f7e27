"""Which jobs keep a post from being put away, whoever tries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.editorial.posts.shelf import Shelf
from tests.engine.ground import Ground

PUT_AWAY = "UPDATE posts SET trashed_at = clock_timestamp(), trashed_by = 'me' WHERE id = %s"


@pytest.fixture
def shelf(ground: Ground) -> Iterator[Shelf]:
    with ground.root.transaction(force_rollback=True):
        yield Shelf(ground.root)


OPEN = ("scheduled", "claimed", "sending", "unknown", "dropped")

# A job's state, how its attempts ended, and whether its post stays.
KEPT: list[tuple[str, tuple[str | None, ...], bool]] = [
    *((state, (), True) for state in OPEN),
    ("unknown", (None,), True),
    ("failed", (), False),
    ("cancelled", (), False),
    ("missed", (), False),
    ("published", (None,), False),
    ("published", ("repeat_safe",), False),
    ("failed", (None,), True),
    ("failed", ("refused",), False),
    ("cancelled", ("absent",), False),
    ("cancelled", ("forced",), False),
    ("cancelled", ("repeat_safe",), True),
    ("failed", ("repeat_safe", "refused"), True),
]


@pytest.mark.parametrize(("state", "proofs", "stays"), KEPT)
def test_what_keeps_a_post(
    shelf: Shelf, state: str, proofs: tuple[str | None, ...], *, stays: bool
) -> None:
    here = shelf.workspace("here")
    page = shelf.channel(here)
    shelf.attempt(shelf.goes(shelf.post(here, "approved"), page), None)
    post = shelf.post(here, "approved")
    job = shelf.goes(post, page, state)
    for number, proof in enumerate(proofs, 1):
        shelf.attempt(job, proof, number)
    if stays:
        assert shelf.refusal(PUT_AWAY, post) == "PB056"
    else:
        assert shelf.do(PUT_AWAY, post) == 1


@pytest.mark.parametrize("trashed", [False, True])
def test_only_what_is_put_away_is_asked_about(shelf: Shelf, *, trashed: bool) -> None:
    """A post stays where it is, and comes back from the trash, whatever its jobs do."""
    here = shelf.workspace("here")
    post = shelf.post(here, "approved", trashed=trashed)
    shelf.goes(post, shelf.channel(here), hold="person")
    if trashed:
        assert shelf.do(PUT_AWAY, post) == 1
    back = "UPDATE posts SET trashed_at = NULL, trashed_by = NULL WHERE id = %s"
    assert shelf.do(back, post) == 1
