"""Platforms of our own: speak Graph, Bluesky, Mastodon and Telegram, log, misbehave."""
