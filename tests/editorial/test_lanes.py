"""How much of a channel's is under way at once is what its platform says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from publisher.db.connect import Database
from publisher.editorial import channels
from publisher.engine.adapter import Capabilities
from publisher.engine.registry import Registry
from tests.editorial.conftest import Stub, Wax


class Wide(Stub):
    platform = "wide"

    def capabilities(self, content: str, progress: object = None) -> Capabilities:
        return replace(super().capabilities(content, progress), in_flight=8, queue="mail")


@pytest.mark.parametrize(("platform", "at_once"), [("stub", 1), ("wide", 8)])
def test_a_gate_is_as_wide_as_its_platform_says(
    app_database: Database, platform: str, at_once: int
) -> None:
    with app_database.engine.begin() as conn:
        added = channels.add(
            conn,
            Wax(),
            Registry([Stub(), Wide()]),
            platform=platform,
            name="A",
            remote_id="1",
            base_url=None,
            token="t",
            trusted=True,
        )
        gate = conn.execute(
            text("SELECT max_in_flight FROM publisher.gates WHERE channel_id = :id"),
            {"id": added.id},
        ).scalar_one()
    assert gate == at_once
    assert added.trusted  # its server may be named by the credential alone
