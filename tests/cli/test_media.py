"""Pictures and videos from the command line."""

from __future__ import annotations

import io
import json

from PIL import Image

from tests.cli.conftest import Terminal
from tests.transport.peer import Peer, answering


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(file, "PNG")
    return file.getvalue()


def test_a_file_is_added_shown_and_listed(terminal: Terminal) -> None:
    (terminal.folder / "a.jpg").write_bytes(picture())
    assert "There are no pictures or videos." in terminal.done("media", "list")
    (kept,) = terminal.listed("media", "add", "a.jpg")
    assert (kept["type"], kept["width"], kept["height"]) == ("image/png", 40, 30)
    assert terminal.listed("media", "show", kept["sha256"]) == [kept]
    assert terminal.listed("media", "add", "a.jpg") == [kept]
    assert terminal.listed("media", "list") == [kept]
    said = terminal.done("media", "show", kept["sha256"])
    assert "40 × 30" in said
    assert said.splitlines()[-1].startswith("Next")


def test_an_address_is_made_for_a_while(terminal: Terminal) -> None:
    (terminal.folder / "a.jpg").write_bytes(picture())
    (kept,) = terminal.listed("media", "add", "a.jpg")
    (made,) = terminal.listed("media", "address", kept["sha256"])
    assert made["url"].startswith(f"/media/1/{kept['sha256']}?expires=")
    said = terminal.done(
        "media", "address", kept["sha256"], PUBLISHER_PUBLIC_URL="https://p.example"
    )
    assert f"https://p.example/media/1/{kept['sha256']}?expires=" in said
    assert terminal.run("media", "address", "0" * 64).returncode == 2
    refused = terminal.run("media", "address", kept["sha256"], "--minutes", "10081")
    assert refused.returncode == 2
    assert "7 days" in refused.stderr


def test_what_is_refused_says_why_and_stores_nothing(terminal: Terminal) -> None:
    (terminal.folder / "a.jpg").write_bytes(b"<svg/>")
    refused = terminal.run("media", "add", "a.jpg")
    assert refused.returncode == 2
    assert "an SVG or XML document" in refused.stderr
    assert terminal.run("media", "add", "none.jpg").returncode == 2
    assert terminal.run("media", "show", "0" * 64).returncode == 2
    assert terminal.listed("media", "list") == []


def test_an_address_is_fetched_where_it_may_lead(terminal: Terminal) -> None:
    body = picture()
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with Peer(answering(answer)) as peer:
        refused = terminal.run("media", "add", peer.url())
        assert refused.returncode == 2
        assert "where we do not go" in refused.stderr
        added = terminal.done(
            "media", "add", peer.url(), "--json", PUBLISHER_ALLOWED_NETWORKS="127.0.0.0/8"
        )
        assert len(peer.requests) == 1
    assert json.loads(added)["width"] == 40


def test_a_folder_that_is_lost_is_said_and_damage_shows(terminal: Terminal) -> None:
    (terminal.folder / "a.png").write_bytes(picture())
    volume = terminal.folder / "volume"
    where = {"PUBLISHER_MEDIA": str(volume)}
    assert terminal.run("media", "add", "a.png", **where).returncode == 3
    volume.mkdir()
    kept = json.loads(terminal.done("media", "add", "a.png", "--json", **where))
    assert kept["storage"] == "folder"
    (path,) = (one for one in volume.rglob("*") if one.is_file())
    path.write_bytes(b"damaged")
    shown = terminal.run("media", "show", kept["sha256"], **where)
    assert shown.returncode == 3
    assert "is damaged" in shown.stderr
