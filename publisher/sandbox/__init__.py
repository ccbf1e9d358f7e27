"""A platform of our own: speaks Graph for Pages, keeps its own log, misbehaves on request."""
