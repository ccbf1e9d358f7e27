"""Pictures over HTTP: as bytes, from an address, in a post, and behind the walls."""

from __future__ import annotations

import io
from typing import Any

import httpx
from PIL import Image

from publisher.editorial.people.roles import Role
from tests.api.conftest import OTHERS, House


def picture(colour: str = "red") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 3), colour).save(file, "PNG")
    return file.getvalue()


def upload(house: House, content: bytes, **how: Any) -> httpx.Response:  # noqa: ANN401 - those of call
    headers = {"Content-Type": "application/octet-stream"}
    return house.call("POST", "/media", content=content, headers=headers, **how)


def test_a_picture_is_kept_once_and_named_in_a_post(house: House) -> None:
    first, again = upload(house, picture(), role=Role.EDITOR), upload(house, picture())
    assert (first.status_code, again.status_code) == (201, 201)
    kept = first.json()
    assert (kept["kind"], kept["type"], kept["width"], kept["height"]) == (
        "image", "image/png", 4, 3,
    )  # fmt: skip
    assert kept["sha256"] == again.json()["sha256"]
    assert first.headers["location"] == kept["url"]
    assert house.done("GET", kept["url"], role=Role.VIEWER)["size"] == kept["size"]
    body = {"text": "x", "media": [{"sha256": kept["sha256"], "alt": "red"}]}
    post = house.done("POST", "/posts", body)
    (item,) = post["words"]["media"]
    assert (item["sha256"], item["alt"], item["kind"]) == (kept["sha256"], "red", "image")


def test_another_workspaces_picture_is_not_there(house: House) -> None:
    kept = upload(house, picture("blue"), workspace=OTHERS).json()
    house.refused(404, "not-found", "GET", kept["url"])
    body = {"text": "x", "media": [{"sha256": kept["sha256"]}]}
    house.refused(422, "media-missing", "POST", "/posts", body)


def test_what_is_no_picture_is_refused_and_nothing_is_kept(house: House) -> None:
    before = house.ground.one("SELECT count(*) FROM media")
    for content, code in ((b"", "media-empty"), (b"MZ not a picture" * 9, "media-type-unknown")):
        problem = upload(house, content).json()
        assert (problem["code"], problem["status"], problem["field"]) == (code, 422, "file")
    assert house.ground.one("SELECT count(*) FROM media") == before


def test_an_address_inside_is_not_gone_to(house: House) -> None:
    for url in ("http://127.0.0.1:1/a.png", "http://169.254.169.254/latest", "http://[::1]/a.png"):
        problem = house.refused(422, "media-url-refused", "POST", "/media-from-url", {"url": url})
        assert problem["field"] == "url"
    house.refused(422, "media-url", "POST", "/media-from-url", {"url": "file:///etc/passwd"})
