"""Channels: what can be connected, found, reconnected and paused, and the words of refusals."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from publisher.db.connect import Database
from publisher.editorial import channels
from publisher.editorial.channel_inputs import ChannelRefused
from publisher.engine.errors import NotFound
from publisher.engine.job import Channel
from publisher.engine.registry import Registry
from publisher.vault import Vault
from tests.editorial.conftest import Wax

Pages = tuple[Channel, Channel]
USUAL: dict[str, Any] = {
    "platform": "stub",
    "name": "Page C",
    "remote_id": "103",
    "base_url": None,
    "token": "secret",
}


def refused(database: Database, registry: Registry, **given: str) -> ChannelRefused:
    with database.engine.begin() as conn, pytest.raises(ChannelRefused) as caught:
        channels.add(conn, Wax(), registry, **(USUAL | given))
    assert "secret" not in str(caught.value)
    return caught.value


def test_a_channel_is_sealed_for_its_own_id(app_database: Database, registry: Registry) -> None:
    vault = Vault(b"k" * 32, "here")
    with app_database.engine.begin() as conn:
        given = USUAL | {"base_url": " http://127.0.0.1:8801/ ", "token": "secret\n", "name": " C "}
        channel = channels.add(conn, vault, registry, **given)
    assert (channel.name, channel.base_url, channel.generation) == (
        "C",
        "http://127.0.0.1:8801",
        1,
    )
    assert channel.sealed is not None
    assert vault.open(channel.sealed, channel_id=channel.id) == "secret"
    with app_database.engine.connect() as conn:
        assert channels.find(conn, "c") == channel
        gates = conn.execute(text("SELECT channel_id, max_in_flight FROM gates")).all()
    assert [tuple(gate) for gate in gates] == [(channel.id, 1)]


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"name": " "}, "name-unusable", "Give 1 to 200 characters on one line."),
        ({"name": "a\nb"}, "name-unusable", "on one line"),
        ({"name": "12"}, "name-unusable", "only digits, as an id is"),
        ({"name": "pAGE a"}, "name-taken", 'The name "pAGE a" is taken by another channel.'),
        (
            {"remote_id": "101"},
            "place-taken",
            'already connected as "Page A" (id 1). Nothing was added. For a new credential:',
        ),
        ({"remote_id": ""}, "remote-id-unusable", "Give the platform's id of the page."),
        ({"remote_id": "1 2"}, "remote-id-unusable", "Give the platform's id of the page."),
        ({"base_url": "graph.example"}, "url-unusable", "Give it as https://server.example."),
        ({"base_url": "ftp://a.example"}, "url-unusable", "Give it as https://server.example."),
        ({"base_url": "http://a b"}, "url-unusable", "Give it as https://server.example."),
        ({"base_url": "http://a:b"}, "url-unusable", "Give it as https://server.example."),
        ({"base_url": "http://[::1"}, "url-unusable", "Give it as https://server.example."),
        ({"base_url": "https://u:p@a.example"}, "url-unusable", "no user, query or fragment"),
        ({"base_url": "https://a.example?x"}, "url-unusable", "no user, query or fragment"),
        ({"token": "\n"}, "token-empty", "--token-env"),
        ({"token": "sec ret"}, "token-unusable", "Copy it again, whole."),
        ({"token": "secrét"}, "token-unusable", "Copy it again, whole."),
    ],
)
def test_refusals(
    app_database: Database,
    registry: Registry,
    pages: Pages,
    given: dict[str, str],
    code: str,
    words: str,
) -> None:
    error = refused(app_database, registry, **given)
    assert error.code == code
    assert words in str(error)
    with app_database.engine.connect() as conn:
        assert conn.scalar(text("SELECT count(*) FROM channels")) == 2


def test_an_unknown_platform_names_those_there_are(
    app_database: Database, registry: Registry
) -> None:
    with (
        app_database.engine.begin() as conn,
        pytest.raises(NotFound, match=r"no platform 'x' here. Known: stub."),
    ):
        channels.add(conn, Wax(), registry, **(USUAL | {"platform": "x"}))


def test_a_refusal_leaves_the_transaction_usable(
    app_database: Database, registry: Registry, pages: Pages
) -> None:
    with app_database.engine.begin() as conn:
        with pytest.raises(ChannelRefused):
            channels.add(conn, Wax(), registry, **(USUAL | {"name": "Page A"}))
        assert channels.add(conn, Wax(), registry, **USUAL).name == "Page C"


def test_the_same_page_at_another_address_is_another_place(
    app_database: Database, registry: Registry, pages: Pages
) -> None:
    with app_database.engine.begin() as conn:
        elsewhere = {"remote_id": "101", "base_url": "http://127.0.0.1:1"}
        channels.add(conn, Wax(), registry, **(USUAL | elsewhere))
    error = refused(app_database, registry, name="D", **elsewhere)
    assert 'already connected as "Page C"' in str(error)


def test_find(app_database: Database, pages: Pages) -> None:
    page_a, page_b = pages
    with app_database.engine.connect() as conn:
        assert channels.find(conn, "Page A") == channels.find(conn, " pAGE a ") == page_a
        assert channels.find(conn, str(page_b.id)) == page_b
        for wanted, words in [
            ("Page", 'Did you mean "Page '),
            ("Pge A", 'Did you mean "Page A"'),
            ("7", 'There is "Page A", "Page B".'),
            ("9" * 5000, "…"),
            ("", 'There is no channel "".'),
        ]:
            with pytest.raises(NotFound) as caught:
                channels.find(conn, wanted)
            assert words in str(caught.value)


def test_names_need_their_joiners(app_database: Database, registry: Registry) -> None:
    with app_database.engine.begin() as conn:
        for number, name in enumerate(("کتاب\u200cخانه", "👩\u200d🌾 Garden")):  # noqa: RUF001
            given = USUAL | {"name": name, "remote_id": str(number)}
            assert channels.add(conn, Wax(), registry, **given) == channels.find(conn, name)


def test_find_asks_when_two_are_alike() -> None:
    # The database's lower() may know fewer letters than ours, so it may hold both.
    alike = [Channel(n, "stub", name, str(n), None, None, 1) for n, name in ((1, "ÉA"), (2, "éa"))]
    directory = channels.Directory(tuple(alike))
    assert directory.find("ÉA") == alike[0]
    assert directory.find("éa") == alike[1]
    with pytest.raises(NotFound, match=r"could be more than one channel. Give an id: 1, 2."):
        directory.find("Éa")


def test_find_where_there_is_none(app_database: Database) -> None:
    with (
        app_database.engine.connect() as conn,
        pytest.raises(NotFound, match="add one with: publisher channels add"),
    ):
        channels.find(conn, "Page A")


def test_reconnect_seals_anew_and_opens_what_was_blocked(
    app_database: Database, pages: Pages
) -> None:
    page, _ = pages
    with app_database.engine.begin() as conn:
        channels.pause(conn, page, "editor")
        conn.execute(
            text(
                "UPDATE gates SET blocked_reason = 'needs reconnecting', blocked_at = now(),"
                " blocked_detail = 'code 190'"
            )
        )
        assert channels.listing(conn)[0].blocked_reason == "needs reconnecting"
        again = channels.reconnect(conn, Wax(), page, " new\n", "editor")
        assert (again.sealed, again.generation) == (b"1:new", 2)
        standing, other = channels.listing(conn)
        assert (standing.blocked_reason, standing.blocked_at) == (None, None)
        assert standing.paused_by == "editor"
        assert other.blocked_reason is not None
        with pytest.raises(ChannelRefused, match="The token is empty"):
            channels.reconnect(conn, Wax(), page, "", "editor")


def test_pause_resume_and_what_waits(app_database: Database, pages: Pages) -> None:
    page, _ = pages
    with app_database.engine.begin() as conn:
        channels.pause(conn, page, "editor")
        conn.execute(
            text(
                "SELECT enqueue(jsonb_build_array(jsonb_build_object('key', 'k', 'kind', 'publish',"
                " 'queue', 'publish', 'channel_id', 1, 'content', '{}', 'run_at', now())))"
            )
        )
        one, two = channels.listing(conn)
        assert (one.channel.name, one.waiting, one.may_be_live, one.is_open) == (
            "Page A",
            1,
            0,
            False,
        )
        assert (two.channel.name, two.waiting, two.is_open) == ("Page B", 0, True)
        channels.resume(conn, page, "editor")
        assert channels.listing(conn)[0].is_open
        conn.execute(text("UPDATE gates SET not_before = now() + interval '1 min'"))
        assert channels.listing(conn)[0].is_limited
        assert not channels.listing(conn)[0].is_open


def test_check_asks_the_adapter(registry: Registry, pages: Pages) -> None:
    assert channels.check(registry, pages[0]).detail == "101 answers"


@pytest.mark.parametrize(
    "spelled",
    [
        "https://SOCIAL.example/", "HTTPS://social.example", "https://social.example:443",
        "https://social.example.", "https://social.example:/",
    ],
)  # fmt: skip
def test_a_server_spelled_in_two_ways_is_not_connected_twice(
    app_database: Database, registry: Registry, spelled: str
) -> None:
    given = USUAL | {"base_url": "https://social.example"}
    with app_database.engine.begin() as conn:
        assert channels.add(conn, Wax(), registry, **given).base_url == "https://social.example"
    error = refused(app_database, registry, name="Another", base_url=spelled)
    assert error.code == "place-taken"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080"),
        ("https://a.example:80/Base/", "https://a.example:80/Base"),
        ("http://a.example:80", "http://a.example"),
    ],
)
def test_the_rest_of_an_address_stays(
    app_database: Database, registry: Registry, given: str, kept: str
) -> None:
    with app_database.engine.begin() as conn:
        assert channels.add(conn, Wax(), registry, **USUAL | {"base_url": given}).base_url == kept
