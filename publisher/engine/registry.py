"""Which adapter speaks to which platform."""

from __future__ import annotations

from collections.abc import Iterable

from publisher.engine.adapter import Adapter
from publisher.engine.errors import NotFound


class Registry:
    """The adapters this process was given by ``bootstrap``."""

    def __init__(self, adapters: Iterable[Adapter]) -> None:
        self._by_platform: dict[str, Adapter] = {}
        for adapter in adapters:
            if adapter.platform in self._by_platform:
                message = f"two adapters for {adapter.platform}"
                raise ValueError(message)
            self._by_platform[adapter.platform] = adapter

    @property
    def platforms(self) -> tuple[str, ...]:
        """Every platform there is an adapter for, sorted."""
        return tuple(sorted(self._by_platform))

    def adapter(self, platform: str) -> Adapter:
        """The adapter for ``platform``; ``NotFound`` names those there are."""
        try:
            return self._by_platform[platform]
        except KeyError:
            known = ", ".join(self.platforms) or "none"
            message = f"There is no platform {platform!r} here. Known: {known}."
            raise NotFound(message) from None
