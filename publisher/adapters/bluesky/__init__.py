"""Bluesky, through the AT Protocol: one record under a key that we choose."""

from publisher.adapters.bluesky.adapter import Bluesky

__all__ = ["Bluesky"]
