"""The witness as an object: what else a store, its network and its credentials can do."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from publisher.config import Settings
from publisher.engine.witness import WitnessUnreachable
from publisher.witness import bucket, store
from tests.transport.peer import Peer, answering
from tests.witness.object_store import BUCKET, ObjectStore
from tests.witness.places import RECORD, Stand

Setting = pytest.MonkeyPatch


def test_a_store_that_ignores_conditions_is_refused(
    object_store: ObjectStore, object_stand: Stand
) -> None:
    object_store.careless = True
    with pytest.raises(WitnessUnreachable, match="conditional writes"):
        object_stand.place.open().write(RECORD, over=None)


def test_a_bucket_that_is_not_there_is_named(object_store: ObjectStore) -> None:
    witness = store(Settings(witness=f"s3://no-such-bucket/witness?endpoint={object_store.url}"))
    with pytest.raises(WitnessUnreachable, match=r"NoSuchBucket.*Make the bucket"):
        witness.read()


def test_nobody_listening_is_out_of_reach(aws: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        witness = store(Settings(witness=f"s3://{BUCKET}/witness?endpoint={url}"))
        with pytest.raises(WitnessUnreachable, match="EndpointConnectionError"):
            witness.read()


def test_one_that_never_answers_is_given_up(aws: dict[str, str], monkeypatch: Setting) -> None:
    monkeypatch.setattr(bucket, "_READ_SECONDS", 0.2)
    with Peer(lambda connection: connection.hang()) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        witness = store(Settings(witness=f"s3://{BUCKET}/witness?endpoint={url}"))
        with pytest.raises(WitnessUnreachable, match="ReadTimeoutError"):
            witness.read()


def test_an_answer_that_is_cut_is_out_of_reach(aws: dict[str, str]) -> None:
    cut = answering(b"HTTP/1.1 200 OK\r\nETag: x\r\nContent-Length: 500\r\n\r\n{")
    with Peer(cut) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        witness = store(Settings(witness=f"s3://{BUCKET}/witness?endpoint={url}"))
        with pytest.raises(WitnessUnreachable):
            witness.read()


def test_without_credentials_it_says_so(object_store: ObjectStore, monkeypatch: Setting) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    witness = store(Settings(witness=f"s3://{BUCKET}/witness?endpoint={object_store.url}"))
    with pytest.raises(WitnessUnreachable, match=r"NoCredentialsError.*AWS credentials"):
        witness.read()


def test_without_the_extra_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['botocore'] = None\n"
        "from publisher.config import Settings\n"
        "from publisher.witness import WitnessExtraMissing, store\n"
        "try:\n    store(Settings(witness='s3://the-bucket/witness'))\n"
        "except WitnessExtraMissing as error:\n    print(error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "pip install 'publisher[s3]'" in said
