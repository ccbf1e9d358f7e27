"""The witness as one key of a Kubernetes ConfigMap, replaced only at the version that was read.

The API server refuses a PUT whose ``resourceVersion`` is not the current one ("Resource versions"
in the Kubernetes API concepts). Where the API is, and who we are there, is what every pod is told
("Accessing the Kubernetes API from a Pod"); token and authorities are read at each call, for the
kubelet renews them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from publisher.config import Settings
from publisher.engine.witness import (
    Held,
    Record,
    WitnessConflict,
    WitnessUnreachable,
    WitnessUnreadable,
)
from publisher.transport import Failed, Reply, Request, Transport, TrustRoots
from publisher.witness.address import ConfigMapAt

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds ``token`` and ``ca.crt``."""
KEY: Final = "witness"
_CALL_SECONDS: Final = 5.0
_TRIES: Final = 3
_HINT: Final = (
    "Let this pod's service account get and update that ConfigMap, and create ConfigMaps in its"
    " namespace or make it beforehand."
)


@dataclass(frozen=True, slots=True)
class _Found:
    """The ConfigMap as it is."""

    whole: dict[str, Any]
    version: str
    data: dict[str, str]

    @property
    def text(self) -> str | None:
        """What our key holds."""
        return self.data.get(KEY)


class ConfigMap:
    """A witness in the cluster that this process runs in."""

    def __init__(self, at: ConfigMapAt, settings: Settings, *, account: Path = ACCOUNT) -> None:
        self._at = at
        # The API is inside the cluster, where no proxy leads.
        self._settings = settings.model_copy(update={"proxy_url": None})
        self._account = account
        self._folder = f"/api/v1/namespaces/{at.namespace}/configmaps"

    @property
    def name(self) -> str:
        """The namespace and the name."""
        return f"configmap://{self._at.namespace}/{self._at.name}"

    def read(self) -> Held | None:
        """The record; None where there is no ConfigMap, or nothing of ours in it.

        Raises ``WitnessUnreadable``, ``WitnessUnreachable``.
        """
        found = self._get()
        if found is None or found.text is None:
            return None
        return Held(Record.from_json(found.text.encode()), found.version)

    def write(self, record: Record, *, over: str | None) -> str:
        """Put ``record`` in the place of what ``over`` stands for; what else is in there stays.

        Raises ``WitnessConflict``, ``WitnessUnreadable``, ``WitnessUnreachable``.
        """
        found = self._get()
        if found is None:
            if over is not None:
                raise self._conflict()
            return self._create(record)
        if over is None and found.text is None:
            over = found.version
        if found.version != over:
            raise self._conflict()
        return self._update(found, {KEY: record.to_json().decode()})

    def replace(self, record: Record) -> str:
        """Put ``record`` in the place of whatever is there, which is kept under another key.

        Raises ``WitnessUnreachable``; ``WitnessUnreadable`` for a ConfigMap that is none.
        """
        for _ in range(_TRIES - 1):
            try:
                return self._replace(record)
            except WitnessConflict:
                continue
        return self._replace(record)

    def _replace(self, record: Record) -> str:
        found = self._get()
        if found is None:
            return self._create(record)
        aside = {} if found.text is None else {f"{KEY}.old": found.text}
        return self._update(found, {KEY: record.to_json().decode(), **aside})

    def _get(self) -> _Found | None:
        reply = self._call("GET", f"{self._folder}/{self._at.name}")
        if reply.status == HTTPStatus.NOT_FOUND:
            return None
        return self._taken_apart(reply)

    def _create(self, record: Record) -> str:
        content = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self._at.name, "namespace": self._at.namespace},
            "data": {KEY: record.to_json().decode()},
        }
        return self._taken_apart(self._call("POST", self._folder, content)).version

    def _update(self, found: _Found, data: dict[str, str]) -> str:
        content = found.whole | {"data": found.data | data}
        path = f"{self._folder}/{self._at.name}"
        return self._taken_apart(self._call("PUT", path, content)).version

    def _taken_apart(self, reply: Reply) -> _Found:
        if reply.status == HTTPStatus.CONFLICT:
            raise self._conflict()
        if reply.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            message = f"The witness {self.name} was refused with status {reply.status}. {_HINT}"
            raise WitnessUnreachable(message)
        whole: Any = reply.json()
        match whole:
            case {"kind": "ConfigMap", "metadata": {"resourceVersion": str(version)}}:
                data = whole.get("data") or {}
                if isinstance(data, dict) and isinstance(data.get(KEY, ""), str):
                    return _Found(whole, version, data)
        message = f"What answers for the witness {self.name} is no Kubernetes API."
        raise WitnessUnreadable(message)

    def _call(self, method: str, path: str, content: object | None = None) -> Reply:
        token, roots = self._credentials()
        request = Request(
            method,
            f"{_api()}{path}",
            headers={"Authorization": f"Bearer {token}"},
            json=content,
            secrets=(token,),
        )
        transport = Transport(self._settings, tls=roots)
        try:
            if method == "GET":
                result = transport.read(request, timeout=_CALL_SECONDS)
            else:
                result = transport.step(request, timeout=_CALL_SECONDS)
        finally:
            transport.close()
        if isinstance(result, Failed):
            message = (
                f"The witness {self.name} cannot be reached: {result.detail}."
                " See to the cluster's API server."
            )
            raise WitnessUnreachable(message)
        return result

    def _credentials(self) -> tuple[str, TrustRoots]:
        try:
            token = (self._account / "token").read_text(encoding="ascii").strip()
            return token, TrustRoots(self._account / "ca.crt")
        except (OSError, ValueError) as error:
            message = (
                f"The witness {self.name} needs this pod's service account, and {self._account}"
                " does not hold it. Run in the cluster with automountServiceAccountToken, or set"
                " PUBLISHER_WITNESS to another place."
            )
            raise WitnessUnreachable(message) from error

    def _conflict(self) -> WitnessConflict:
        return WitnessConflict(f"Another process has written the witness {self.name}.")

    def __repr__(self) -> str:
        return f"<witness {self.name}>"


def _api() -> str:
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        message = (
            "PUBLISHER_WITNESS names a ConfigMap, and this process runs in no Kubernetes cluster:"
            " KUBERNETES_SERVICE_HOST is not set. Give another witness."
        )
        raise WitnessUnreachable(message)
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
