"""Three channels, one refuses: two are live, one is to be fixed; the fix goes out once, only there.

Through the commands and through the API: a real worker, and a sandbox that keeps its own record.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx
import pytest

from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import Terminal
from tests.cli.test_api import LOCAL, serving, token

pytestmark = pytest.mark.timeout(500)

TEXT, FIXED = "Open on Saturday", "Open on Saturday, from nine"
NAMES = ("Page A", "Page B", "Page C")


@pytest.fixture
def pages(terminal: Terminal, sandbox: SandboxProcess) -> list[str]:
    """Three pages of the sandbox; the second refuses this text."""
    made = sandbox.control.add_pages(3)
    for name, one in zip(NAMES, made, strict=True):
        terminal.done(
            *("channels", "add", "facebook_pages", "--name", name, "--remote-id", one["id"]),
            *("--base-url", sandbox.url, "--token-env", "PAGE_TOKEN"),
            PAGE_TOKEN=one["token"],
        )
    ids = [one["id"] for one in made]
    sandbox.control.behave("refuse-invalid", page=ids[1], endpoint="feed", times=1)
    return ids


def on_pages(sandbox: SandboxProcess, pages: list[str]) -> list[list[str]]:
    return [[post["message"] for post in sandbox.control.posts(page)] for page in pages]


def test_by_command(terminal: Terminal, sandbox: SandboxProcess, pages: list[str]) -> None:
    words = [word for name in NAMES for word in ("--channel", name)]
    terminal.done("posts", "new", "--text", TEXT, "--ref", "sat", *words)
    terminal.done("posts", "approve", "sat")
    terminal.done("posts", "schedule", "sat", "--at", "now")
    with terminal.working():
        assert terminal.run("jobs", "wait", "--timeout", "60").returncode == 1
        assert on_pages(sandbox, pages) == [[TEXT], [], [TEXT]]
        shown = terminal.done("posts", "show", "sat")
        assert shown.count("live; again only on purpose") == 2
        assert shown.count("fix the post and schedule it again") == 1
        assert 'Next: publisher posts fix sat --channel "Page B" --text … --at TIME' in shown
        (told,) = terminal.listed("posts", "show", "sat")
        assert told["next"] == {"Page A": "again", "Page B": "fix", "Page C": "again"}
        # What is live is not scheduled once more, whoever asks for all three.
        refused = terminal.run("posts", "schedule", "sat", "--at", "now")
        assert (refused.returncode, "already-live" in refused.stderr) == (4, True)
        words = ["posts", "fix", "sat", "--channel", "Page B", "--text", FIXED, "--at", "now"]
        terminal.done(*words)
        job = json.loads(terminal.done("posts", "show", "sat", "--json"))["jobs"][-1]
        assert terminal.run("jobs", "wait", job["id"], "--timeout", "60").returncode == 0
        again = terminal.run(*words)
        assert again.returncode == 4, again
    (told,) = terminal.listed("posts", "show", "sat")
    assert [(one["channel"], one["state"], one["version"]) for one in told["jobs"]] == [
        ("Page A", "published", 1),
        ("Page B", "failed", 1),
        ("Page C", "published", 1),
        ("Page B", "published", 2),
    ]
    assert told["jobs"][3]["replaces"] == told["jobs"][1]["id"]
    assert on_pages(sandbox, pages) == [[TEXT], [FIXED], [TEXT]]


def test_by_api(terminal: Terminal, sandbox: SandboxProcess, pages: list[str]) -> None:
    secret = token(terminal)
    bearer = {"Authorization": f"Bearer {secret}"}
    with (
        serving(terminal) as (url, _process),
        httpx.Client(headers=bearer, timeout=60, trust_env=False) as client,
    ):

        def call(method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
            key = {"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else {}
            return client.request(method, f"{url}{path}", json=body, headers=key | headers)

        def done(method: str, path: str, body: object = None, **headers: str) -> Any:  # noqa: ANN401
            answer = call(method, path, body, **headers)
            assert answer.is_success, answer.text
            return answer.json()

        listed = {one["name"]: one["id"] for one in done("GET", "/channels")["channels"]}
        channels = [listed[name] for name in NAMES]
        post = f"/posts/{done('POST', '/posts', {'text': TEXT, 'channels': channels})['id']}"
        done("POST", f"{post}/approve", {"version": 1})
        places = {"places": [{"channel": one, "at": "now"} for one in channels]}
        jobs = done("POST", f"{post}/schedule", places)["jobs"]
        ids = {one["channel"]["id"]: one["id"] for one in jobs}
        with Terminal(terminal.environment | LOCAL, terminal.folder).working():
            told = {}
            for channel, job in ids.items():
                waited = done("POST", f"/jobs/{job}/wait", {"seconds": 30})
                assert waited["settled"], waited
                told[channel] = (waited["job"]["state"], waited["job"]["on_page"])
            live = ("published", "yes")
            assert told == {channels[0]: live, channels[1]: ("failed", "no"), channels[2]: live}
            refused = call("POST", f"{post}/schedule", places)
            assert (refused.status_code, refused.json()["code"]) == (409, "already-live")
            body = {"text": TEXT, "variants": {str(channels[1]): {"text": FIXED}}}
            etag = call("GET", post).headers["etag"]
            changed = done("PUT", post, body, **{"If-Match": etag})
            assert changed["changes"] == []
            done("POST", f"{post}/approve", {"version": 2})
            fix = {"places": [{"channel": channels[1], "at": "now"}]}
            (job,) = done("POST", f"{post}/schedule", fix)["jobs"]
            waited = done("POST", f"/jobs/{job['id']}/wait", {"seconds": 30})
            assert (waited["job"]["state"], waited["job"]["on_page"]) == live
            again = call("POST", f"{post}/schedule", fix)
            assert (again.status_code, again.json()["code"]) == (409, "already-live")
    assert on_pages(sandbox, pages) == [[TEXT], [FIXED], [TEXT]]
