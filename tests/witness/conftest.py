"""One stand for each kind of place, each over a real file or a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session

from tests.transport.peer import Certificate, make_certificate
from tests.witness import cluster as clusters
from tests.witness.cluster import Cluster
from tests.witness.object_store import BUCKET, ObjectStore
from tests.witness.places import Place, Stand

AWS = {
    "AWS_ACCESS_KEY_ID": "canary-access-key",
    "AWS_SECRET_ACCESS_KEY": "canary-secret-key",
    "AWS_SESSION_TOKEN": "canary-session-token",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def cluster(certificate: Certificate) -> Iterator[Cluster]:
    with clusters.serving(certificate) as running:
        yield running


@pytest.fixture(scope="session")
def shared_object_store() -> Iterator[ObjectStore]:
    running = ObjectStore()
    with running.serving():
        yield running


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    environment = AWS | {"AWS_CONFIG_FILE": str(tmp_path / "no"), "HOME": str(tmp_path)}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment


@pytest.fixture
def object_store(shared_object_store: ObjectStore, aws: dict[str, str]) -> Iterator[ObjectStore]:
    client = s3(shared_object_store)
    client.create_bucket(Bucket=BUCKET)
    yield shared_object_store
    shared_object_store.careless = shared_object_store.down = False
    for entry in client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
        client.delete_object(Bucket=BUCKET, Key=entry["Key"])
    client.delete_bucket(Bucket=BUCKET)


def s3(store: ObjectStore) -> Any:  # noqa: ANN401 - botocore makes its classes
    return get_session().create_client("s3", endpoint_url=store.url, region_name="us-east-1")


@pytest.fixture
def file_stand(tmp_path: Path) -> Stand:
    volume = tmp_path / "volume"
    volume.mkdir()
    return Stand(
        Place(f"file://{volume}/witness"),
        plant=(volume / "witness").write_bytes,
        kept=lambda: [path.read_bytes() for path in volume.glob("*.old")],
        cut=lambda: volume.rename(tmp_path / "unmounted"),
    )


@pytest.fixture
def object_stand(object_store: ObjectStore, aws: dict[str, str]) -> Stand:
    client = s3(object_store)
    address = f"s3://{BUCKET}/fleet/witness?endpoint={object_store.url}&region=us-east-1"

    def kept() -> list[bytes]:
        found = client.list_objects_v2(Bucket=BUCKET, Prefix="fleet/witness.")
        keys = [entry["Key"] for entry in found.get("Contents", ())]
        return [client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys]

    def cut() -> None:
        object_store.down = True

    return Stand(
        Place(address, aws),
        plant=lambda content: client.put_object(Bucket=BUCKET, Key="fleet/witness", Body=content),
        kept=kept,
        cut=cut,
    )


@pytest.fixture
def configmap_stand(
    cluster: Cluster, certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stand:
    account = clusters.service_account(tmp_path / "account", certificate)
    environment = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(cluster.server_address[1]),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def plant(content: bytes) -> None:
        metadata = {"name": "witness", "namespace": clusters.NAMESPACE, "resourceVersion": "1"}
        data = {"witness": content.decode(errors="replace"), "theirs": "stays"}
        cluster.held["witness"] = {"kind": "ConfigMap", "metadata": metadata, "data": data}

    def kept() -> list[bytes]:
        data = cluster.held["witness"]["data"]
        return [data[name].encode() for name in data if name.endswith(".old")]

    def cut() -> None:
        cluster.forbids = True

    return Stand(
        Place(f"configmap://{clusters.NAMESPACE}/witness", environment, account),
        plant=plant,
        kept=kept,
        cut=cut,
    )


@pytest.fixture(params=["file", "object", "configmap"])
def stand(request: pytest.FixtureRequest) -> Stand:
    found = request.getfixturevalue(f"{request.param}_stand")
    assert isinstance(found, Stand)
    return found
