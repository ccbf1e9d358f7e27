"""Graph for Pages: feed, photos, videos, listings, tokens."""
