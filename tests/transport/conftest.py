"""Fixtures for calls over real sockets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from publisher.config import Settings
from publisher.engine.adapter import SendPermit, boottime
from publisher.engine.job import JobId, Token
from publisher.transport import Transport
from publisher.transport.connection import TrustRoots
from tests.transport.peer import Certificate, make_certificate

MakePermit = Callable[..., SendPermit]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def roots(certificate: Certificate) -> TrustRoots:
    roots = TrustRoots()
    roots.load_verify_locations(cadata=certificate.text)
    return roots


@pytest.fixture
def transport(tmp_path: Path, roots: TrustRoots) -> Transport:
    return Transport(Settings(home=tmp_path), tls=roots)


@pytest.fixture
def make_permit() -> MakePermit:
    """Make a permit with ``window`` seconds to begin and ``budget`` seconds to end."""

    def make(*, window: float = 5.0, budget: float = 5.0) -> SendPermit:
        return SendPermit(
            job_id=JobId(1),
            token=Token(uuid4()),
            attempt=1,
            channel_id=1,
            content_sha256=b"\x01" * 32,
            deadline=boottime() + window,
            budget=budget,
        )

    return make


@pytest.fixture
def permit(make_permit: MakePermit) -> SendPermit:
    return make_permit()
