"""Mastodon and servers like it: media, statuses, timelines, idempotency keys."""
