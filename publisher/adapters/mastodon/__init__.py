"""Mastodon, and servers that speak its API."""

from publisher.adapters.mastodon.adapter import Mastodon

__all__ = ["Mastodon"]
