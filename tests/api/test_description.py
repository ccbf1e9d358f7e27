"""docs/openapi.json is what the API serves, and nothing that it promised goes away unsaid."""

from __future__ import annotations

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from publisher.api import description
from publisher.api.application import VERSION
from tests.api.conftest import House

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "openapi.json"


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return description.document()


def test_the_committed_document_is_the_one_that_is_made(described: dict[str, Any]) -> None:
    assert json.loads(FILE.read_text()) == json.loads(json.dumps(described)), (
        "run: python -m publisher.api.description > docs/openapi.json"
    )


def test_it_is_served_as_it_is_committed(house: House) -> None:
    served = house.call("GET", "/openapi.json", role=None)
    assert served.json() == json.loads(FILE.read_text())


@pytest.mark.parametrize("commit", ["HEAD", "HEAD~1"])
def test_nothing_that_was_promised_is_gone_under_the_same_version(commit: str) -> None:
    """Against what is committed, and the commit before: a loss has another version."""
    shown = subprocess.run(
        ["git", "show", f"{commit}:docs/openapi.json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if shown.returncode != 0:
        pytest.skip("there was none before")
    before = json.loads(shown.stdout)
    if description.series(before["info"]["version"]) == description.series(VERSION):
        assert not list(description.breaks(before, json.loads(FILE.read_text())))


def test_versions_of_one_series_only_add() -> None:
    assert description.series("0.2.0") == description.series("0.2.7")
    assert description.series("0.2.0") != description.series("0.3.0")
    assert description.series("1.2.0") == description.series("1.3.0")
    assert description.series("1.0.0") != description.series("2.0.0")


def _without(document: dict[str, Any], *path: str) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    at: Any = changed
    for part in path[:-1]:
        at = at[part]
    del at[path[-1]]
    return changed


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (("paths", "/api/v1/me"), "GET /api/v1/me is gone"),
        (("paths", "/api/v1/jobs/{job}/cancel", "post"), "POST /api/v1/jobs/{job}/cancel is gone"),
        (
            ("components", "schemas", "Job", "properties", "on_page"),
            "GET /api/v1/jobs: the answer.jobs has no on_page any more",
        ),
        (
            ("components", "schemas", "NewPost", "properties", "labels"),
            "POST /api/v1/posts: the body takes no labels any more",
        ),
        (
            ("paths", "/api/v1/channels", "post", "responses", "201"),
            "POST /api/v1/channels: status 201 is gone",
        ),
    ],
)
def test_what_is_taken_away_is_noticed(
    described: dict[str, Any], path: tuple[str, ...], said: str
) -> None:
    assert said in set(description.breaks(described, _without(described, *path)))


def test_what_is_narrowed_is_noticed(described: dict[str, Any]) -> None:
    narrower = copy.deepcopy(described)
    schemas = narrower["components"]["schemas"]
    schemas["NewPost"]["required"] = ["text", "channels"]
    schemas["DecisionBody"]["properties"]["decision"]["enum"].remove("dropped")
    listing = narrower["paths"]["/api/v1/jobs"]["get"]
    listing["parameters"][0]["required"] = True
    told = set(description.breaks(described, narrower))
    assert told == {
        "POST /api/v1/posts: the body needs channels now",
        "POST /api/v1/unknowns/{job}/resolve: the body.decision no longer takes dropped",
        "GET /api/v1/jobs: parameter state is needed now",
    }


def test_what_is_added_breaks_nobody(described: dict[str, Any]) -> None:
    wider = copy.deepcopy(described)
    wider["paths"]["/api/v1/more"] = copy.deepcopy(wider["paths"]["/api/v1/me"])
    wider["components"]["schemas"]["Job"]["properties"]["more"] = {"type": "string"}
    assert not list(description.breaks(described, wider))
    assert not list(description.breaks(described, described))
