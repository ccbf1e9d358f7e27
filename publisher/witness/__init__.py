"""Places outside the database that hold the witness, chosen by ``PUBLISHER_WITNESS``."""

from __future__ import annotations

from typing import assert_never

from publisher.config import Settings
from publisher.engine.witness import Store
from publisher.witness.address import (
    ConfigMapAt,
    FileAt,
    ObjectAt,
    WitnessExtraMissing,
    WitnessUnusable,
    parse,
)
from publisher.witness.configmap import ConfigMap
from publisher.witness.file import File

__all__ = ["WitnessExtraMissing", "WitnessUnusable", "store"]


def store(settings: Settings) -> Store:
    """The witness that ``settings`` name; nothing is read or connected to yet.

    Unset, it is a file under ``PUBLISHER_HOME``, which is right for one machine. Raises
    ``WitnessUnusable``, ``WitnessExtraMissing``, ``WitnessUnreachable``.
    """
    if settings.witness is None:
        return File(settings.home.expanduser() / "witness", makes_folder=True)
    match parse(settings.witness):
        case FileAt(path):
            return File(path)
        case ObjectAt() as at:
            try:
                from publisher.witness.bucket import Object  # noqa: PLC0415 - an extra
            except ImportError:
                raise WitnessExtraMissing from None
            return Object(at, settings)
        case ConfigMapAt() as at:
            return ConfigMap(at, settings)
        case never:
            assert_never(never)
