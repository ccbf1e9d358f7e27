"""Taking PUBLISHER_WITNESS apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from publisher.witness.address import (
    ConfigMapAt,
    FileAt,
    ObjectAt,
    WitnessUnusable,
    parse,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("/srv/shared/witness", FileAt(Path("/srv/shared/witness"))),
        ("witness", FileAt(Path("witness"))),
        ("file:///srv/a%20b/witness", FileAt(Path("/srv/a b/witness"))),
        ("FILE://localhost/srv/witness", FileAt(Path("/srv/witness"))),
        ("s3://the-bucket/a/b", ObjectAt("the-bucket", "a/b", None, None)),
        (
            "s3://the-bucket/key?endpoint=https://store.example:9000&region=eu-1",
            ObjectAt("the-bucket", "key", "https://store.example:9000", "eu-1"),
        ),
        ("configmap://posting/publisher.witness", ConfigMapAt("posting", "publisher.witness")),
    ],
)
def test_each_form(text: str, address: object) -> None:
    assert parse(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/srv/shared/",
        "a\nb",
        "file://host/path",
        "file:relative",
        "file:///srv/witness?x=1",
        "file:///a%00b",
        "http://store.example/witness",
        "s3:/the-bucket/key",
        "s3://the-bucket",
        "s3://the-bucket/",
        "s3://B/key",
        "s3://the-bucket/key?endpoint=ftp://x",
        "s3://the-bucket/key?endpoint=https://u:canary@x",
        "s3://the-bucket/key?endpoint=https://x:99999",
        "s3://the-bucket/key?secret=canary",
        "s3://the-bucket/key?region=a&region=b",
        "s3://canary:canary@the-bucket/key",
        "s3://[/key",
        "configmap://posting",
        "configmap://posting/a/b",
        "configmap://Posting/witness",
        "configmap://posting/witness?x=1",
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(WitnessUnusable) as caught:
        parse(text)
    said = str(caught.value)
    assert said.startswith("PUBLISHER_WITNESS ")
    assert all(form in said for form in ("file:///path", "s3://bucket", "configmap://namespace"))
    assert "canary" not in said
    assert caught.value.exit_code == 2
