"""Which workspace a command works in: the one that is named, the only one, or none for sure."""

from __future__ import annotations

import psycopg

from publisher.config import Settings
from tests.cli.conftest import Terminal

POST = "one,Page A,a first post,2031-05-01T10:00:00+00:00"


def second(settings: Settings) -> None:
    assert settings.database_url is not None
    with psycopg.connect(settings.database_url.get_secret_value(), autocommit=True) as conn:
        conn.execute("SET ROLE publisher_owner")
        conn.execute(
            "INSERT INTO publisher.workspaces (slug, name, zone) VALUES ('other', 'Other', 'UTC')"
        )


def test_with_one_workspace_nobody_has_to_name_it(terminal: Terminal, page: str) -> None:
    assert page
    terminal.import_posts(POST)
    assert "Page A" in terminal.done("jobs", "list")
    assert "Page A" in terminal.done("jobs", "list", PUBLISHER_WORKSPACE="main")


def test_a_workspace_that_is_not_there_is_named(terminal: Terminal, page: str) -> None:
    assert page
    said = terminal.run("jobs", "list", PUBLISHER_WORKSPACE="mian")
    assert said.returncode == 2
    assert 'There is no workspace "mian" (PUBLISHER_WORKSPACE). Did you mean "main"?' in said.stderr


def test_of_several_one_is_named_before_anything_is_added(
    terminal: Terminal, page: str, settings: Settings
) -> None:
    assert page
    terminal.import_posts(POST)
    second(settings)
    assert "Page A" in terminal.done("jobs", "list")  # all of them, to look at
    assert "Page A" not in terminal.done("jobs", "list", PUBLISHER_WORKSPACE="other")
    refused = terminal.run(
        *("channels", "add", "facebook_pages", "--name", "Page B", "--remote-id", "second"),
        *("--token-env", "PAGE_TOKEN"),
        PAGE_TOKEN="secret",
    )
    assert refused.returncode == 2
    assert "Set PUBLISHER_WORKSPACE to one of: main, other." in refused.stderr
