"""``publisher api`` as its user has it: a process, a token, a test channel on the sandbox."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import Terminal

ADDRESS = "ann@example.org"
LOCAL = {"PUBLISHER_ALLOWED_NETWORKS": "127.0.0.0/8"}


@contextmanager
def serving(terminal: Terminal) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "publisher", "api", "--port", "0"],
        env=terminal.environment | LOCAL,
        cwd=terminal.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "/api/v1" in line, process.stderr.read() if process.stderr else line
        yield line.split()[-1], process
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said


def token(terminal: Terminal) -> str:
    terminal.done("users", "add", ADDRESS, "--name", "Ann", "--role", "admin")
    scopes = (
        "posts.read", "posts.write", "posts.approve", "posts.schedule", "jobs.read",
        "unknowns.read", "unknowns.resolve", "channels.read", "channels.connect",
    )  # fmt: skip
    words = [word for scope in scopes for word in ("--scope", scope)]
    said = terminal.done("tokens", "add", "cms", "--user", ADDRESS, *words)
    return next(word for word in said.split() if word.startswith("pbl_"))


def test_a_lost_answer_on_a_test_channel_ends_as_maybe(
    terminal: Terminal, sandbox: SandboxProcess
) -> None:
    page = sandbox.control.add_pages(1)[0]
    secret = token(terminal)
    with (
        serving(terminal) as (url, _process),
        httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=60, trust_env=False
        ) as client,
    ):

        def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
            answer = client.post(
                f"{url}{path}", json=body, headers={"Idempotency-Key": str(uuid.uuid4())}
            )
            assert answer.is_success, answer.text
            told: dict[str, Any] = answer.json()
            return told

        channel = ask(
            "/channels",
            {
                "platform": "facebook_pages",
                "name": "Test page",
                "remote_id": page["id"],
                "base_url": sandbox.url,
                "token": page["token"],
            },
        )["id"]
        body = {"text": "Hello #sandbox:lose-answer", "channels": [channel]}
        post = ask("/posts", body)["id"]
        ask(f"/posts/{post}/approve", {"version": 1})
        places = {"places": [{"channel": channel, "at": "now"}]}
        (job,) = ask(f"/posts/{post}/schedule", places)["jobs"]
        assert (job["on_page"], job["safe_to_repeat"]) == ("no", False)
        environment = terminal.environment | LOCAL
        with Terminal(environment, terminal.folder).working():
            waited = ask(f"/jobs/{job['id']}/wait", {"seconds": 30})
        assert waited["settled"], waited
        told = waited["job"]
        assert (told["state"], told["on_page"], told["safe_to_repeat"]) == (
            "unknown", "maybe", False,
        )  # fmt: skip
        # It is there, as the sandbox's own record says, and the API sends it no second time.
        listed = client.get(f"{url}/unknowns").json()["unknowns"]
        assert [one["id"] for one in listed] == [job["id"]]
        decided = ask(
            f"/unknowns/{job['id']}/resolve", {"decision": "attested", "reason": "I saw it"}
        )
        assert decided["state"] == "published"


def test_an_address_that_is_taken_is_said(terminal: Terminal) -> None:
    with serving(terminal) as (url, _process):
        port = url.rpartition(":")[2].partition("/")[0]
        second = terminal.run("api", "--port", port)
    assert second.returncode == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in second.stderr
    assert "(address-taken)" in second.stderr


def test_a_stranger_learns_nothing(terminal: Terminal) -> None:
    with serving(terminal) as (url, _process):
        answer = httpx.get(f"{url}/me", trust_env=False)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
