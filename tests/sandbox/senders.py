"""Accounts of the other platforms, each with the means to post there as its clients do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from publisher.sandbox import log
from publisher.sandbox.bluesky import tids

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from publisher.sandbox.log import LoggedPost, LoggedRequest
    from publisher.sandbox.process import SandboxProcess

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
MP4 = b"\x00\x00\x00\x18ftypmp42" + bytes(64)
POSTS = "app.bsky.feed.post"


class AccountUnderTest:
    """An account and what the sandbox's log says of it."""

    platform: str

    def __init__(self, sandbox: SandboxProcess, client: httpx.Client, details: Any) -> None:  # noqa: ANN401
        self.sandbox = sandbox
        self.client = client
        self.control = sandbox.control
        self.account = self.control.add_account(self.platform, **details)
        self.id = str(self.account["id"])
        self.token = str(self.account["token"])

    @property
    def logged(self) -> list[LoggedPost]:
        ever = log.read(self.sandbox.log).ever_posted
        return [post for post in ever if post.page == self.id and not post.foreign]

    @property
    def requests(self) -> list[LoggedRequest]:
        return [it for it in log.read(self.sandbox.log).requests if it.page == self.id]

    def publishing(self, text: str) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Path, headers and JSON of a call that posts ``text``."""
        raise NotImplementedError

    def publish(self, text: str) -> httpx.Response:
        path, headers, data = self.publishing(text)
        return self.client.post(path, json=data, headers=headers)

    def raw(self, text: str) -> bytes:
        """The same call as bytes, for a plain socket."""
        path, headers, data = self.publishing(text)
        body = json.dumps(data).encode()
        more = {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [f"POST {path} HTTP/1.1", "Host: sandbox", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in more.items()]
        return "\r\n".join([*lines, "", ""]).encode() + body


class BlueskyUnderTest(AccountUnderTest):
    platform = "bluesky"

    def __init__(self, sandbox: SandboxProcess, client: httpx.Client, number: int) -> None:
        super().__init__(sandbox, client, {"handle": f"it{number}.test"})
        self.handle = str(self.account["handle"])
        self.session = self.sign_in().json()
        self._keys = number << 20

    def sign_in(self, **given: str) -> httpx.Response:
        known = {"identifier": self.handle, "password": self.token}
        return self.call("server.createSession", {**known, **given}, token="")

    def rkey(self) -> str:
        self._keys += 1
        return tids.at(1_796_000_000 + self._keys / 1000, 0)

    def record(self, text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        created = {"createdAt": "2026-11-30T09:00:00.000Z"}
        return {"$type": POSTS, "text": text, **created, **more}

    def put(self, rkey: str, record: Mapping[str, Any], **more: Any) -> httpx.Response:  # noqa: ANN401
        return self.write("putRecord", rkey, record=record, **more)

    def write(self, method: str, rkey: str, **given: Any) -> httpx.Response:  # noqa: ANN401
        place = {"repo": self.id, "collection": POSTS, "rkey": rkey}
        return self.call(f"repo.{method}", {**place, **given})

    def get(self, rkey: str) -> httpx.Response:
        return self.read("getRecord", rkey=rkey)

    def read(self, method: str, **given: Any) -> httpx.Response:  # noqa: ANN401
        place = {"repo": self.id, "collection": POSTS}
        return self.client.get(f"/xrpc/com.atproto.repo.{method}", params={**place, **given})

    def upload(self, content: bytes = PNG, content_type: str = "image/png") -> httpx.Response:
        headers = {**self.headers(), "Content-Type": content_type}
        path = "/xrpc/com.atproto.repo.uploadBlob"
        return self.client.post(path, content=content, headers=headers)

    def headers(self, token: str | None = None) -> dict[str, str]:
        token = self.session["accessJwt"] if token is None else token
        return {"Authorization": f"Bearer {token}"} if token else {}

    def call(self, method: str, given: Any = None, token: str | None = None) -> httpx.Response:  # noqa: ANN401
        path = f"/xrpc/com.atproto.{method}"
        return self.client.post(path, json=given, headers=self.headers(token))

    def publishing(self, text: str) -> tuple[str, dict[str, str], dict[str, Any]]:
        place = {"repo": self.id, "collection": POSTS, "rkey": self.rkey(), "swapRecord": None}
        given = {**place, "record": self.record(text)}
        return "/xrpc/com.atproto.repo.putRecord", self.headers(), given


class MastodonUnderTest(AccountUnderTest):
    platform = "mastodon"

    def __init__(self, sandbox: SandboxProcess, client: httpx.Client, number: int) -> None:
        details = {"id": str(110_000_000_000_500_000 + number), "username": f"it{number}"}
        super().__init__(sandbox, client, {**details, "token": f"token-{number}"})

    def headers(self, key: str | None = None) -> dict[str, str]:
        named = {} if key is None else {"Idempotency-Key": key}
        return {"Authorization": f"Bearer {self.token}", **named}

    def post(self, text: str = "", *, key: str | None = None, **more: Any) -> httpx.Response:  # noqa: ANN401
        given = {"status": text, **more}
        return self.client.post("/api/v1/statuses", json=given, headers=self.headers(key))

    def upload(self, content: bytes = PNG, **more: str) -> httpx.Response:
        files = {"file": ("file", content)}
        return self.client.post("/api/v2/media", files=files, data=more, headers=self.headers())

    def get(self, path: str, **params: Any) -> httpx.Response:  # noqa: ANN401
        return self.client.get(f"/api/{path}", params=params, headers=self.headers())

    def listing(self, **params: Any) -> httpx.Response:  # noqa: ANN401
        return self.get(f"v1/accounts/{self.id}/statuses", **params)

    def delete(self, status: str) -> httpx.Response:
        return self.client.delete(f"/api/v1/statuses/{status}", headers=self.headers())

    def publishing(self, text: str) -> tuple[str, dict[str, str], dict[str, Any]]:
        return "/api/v1/statuses", self.headers(), {"status": text}


class TelegramUnderTest(AccountUnderTest):
    platform = "telegram"

    def __init__(self, sandbox: SandboxProcess, client: httpx.Client, number: int) -> None:
        details = {"id": f"-100{number}", "username": f"it_channel_{number}"}
        token = f"{7_100_000_000 + number}:{'a' * 35}"
        super().__init__(sandbox, client, {**details, "token": token})
        self.username = str(self.account["username"])

    def call(self, method: str, **given: Any) -> httpx.Response:  # noqa: ANN401
        files = given.pop("files", None)
        given = {"chat_id": self.id, **given}
        path = f"/bot{self.token}/{method}"
        if files is None:
            return self.client.post(path, json=given)
        return self.client.post(path, data=given, files=files)

    def publishing(self, text: str) -> tuple[str, dict[str, str], dict[str, Any]]:
        return f"/bot{self.token}/sendMessage", {}, {"chat_id": self.id, "text": text}
