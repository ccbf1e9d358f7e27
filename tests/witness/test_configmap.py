"""The witness as a ConfigMap: beside what others keep in it, and only with this pod's rights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from publisher.engine.witness import WitnessUnreachable, WitnessUnreadable
from publisher.witness import configmap
from tests.transport.peer import Certificate, Peer, answering, make_certificate
from tests.witness.cluster import Cluster, service_account
from tests.witness.places import RECORD, Stand, ticked


def test_one_made_beforehand_is_filled_and_keeps_the_rest(
    cluster: Cluster, configmap_stand: Stand
) -> None:
    metadata = {"name": "witness", "labels": {"app": "posting"}, "resourceVersion": "7"}
    cluster.held["witness"] = {"kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
    witness = configmap_stand.place.open()
    assert witness.read() is None
    stamp = witness.write(RECORD, over=None)
    witness.write(ticked(120), over=stamp)
    found = cluster.held["witness"]
    assert found["metadata"]["labels"] == {"app": "posting"}
    assert found["data"].keys() == {"a", "witness"}
    held = witness.read()
    assert held is not None
    assert held.record.tick == 120


def test_a_renewed_token_is_used(configmap_stand: Stand, certificate: Certificate) -> None:
    witness = configmap_stand.place.open()
    assert configmap_stand.place.account is not None
    folder = configmap_stand.place.account
    service_account(folder, certificate, "an-old-token")
    with pytest.raises(WitnessUnreachable, match="status 401"):
        witness.read()
    service_account(folder, certificate)
    assert witness.read() is None


def test_an_api_that_another_authority_vouches_for_gets_no_token(
    configmap_stand: Stand, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = make_certificate(tmp_path / "other")
    account = service_account(tmp_path / "elsewhere", other)
    with pytest.raises(WitnessUnreachable, match="cannot be reached"):
        replace(configmap_stand.place, account=account).open().read()


def test_a_public_certificate_is_not_enough(configmap_stand: Stand, tmp_path: Path) -> None:
    account = tmp_path / "elsewhere"
    account.mkdir()
    (account / "token").write_text("token")
    (account / "ca.crt").write_text("")
    with pytest.raises(WitnessUnreachable, match="service account"):
        replace(configmap_stand.place, account=account).open().read()


def test_rights_that_are_missing_are_named(cluster: Cluster, configmap_stand: Stand) -> None:
    cluster.forbids = True
    with pytest.raises(WitnessUnreachable, match=r"403.*get and update that ConfigMap"):
        configmap_stand.place.open().read()


def test_one_that_is_immutable_is_refused(cluster: Cluster, configmap_stand: Stand) -> None:
    witness = configmap_stand.place.open()
    stamp = witness.write(RECORD, over=None)
    cluster.held["witness"]["immutable"] = True
    with pytest.raises(WitnessUnreachable, match="422"):
        witness.write(ticked(120), over=stamp)


def test_outside_a_cluster_it_says_so(
    configmap_stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = configmap_stand.place.open()
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(WitnessUnreachable, match="no Kubernetes cluster"):
        witness.read()


def test_an_api_that_never_answers_is_given_up(
    configmap_stand: Stand, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configmap, "_CALL_SECONDS", 0.3)
    witness = configmap_stand.place.open()
    with Peer(lambda connection: connection.hang(), certificate.server) as peer:
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(peer.port))
        with pytest.raises(WitnessUnreachable, match="cannot be reached"):
            witness.read()


def test_no_proxy_is_used_inside_the_cluster(
    configmap_stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUBLISHER_PROXY_URL", "http://127.0.0.1:1")
    assert configmap_stand.place.open().read() is None


@pytest.mark.parametrize("answer", [b"hello", b"[]", b'{"kind": "ConfigMap", "metadata": {}}'])
def test_what_is_no_kubernetes_api_is_no_witness(
    configmap_stand: Stand,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
    answer: bytes,
) -> None:
    witness = configmap_stand.place.open()
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer)

    with Peer(answering(whole), certificate.server) as peer:
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(peer.port))
        with pytest.raises(WitnessUnreadable, match="no Kubernetes API"):
            witness.read()
