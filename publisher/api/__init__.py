"""The API under ``/api/v1``: every verb of jobs, doubts, channels and posts, for programs.

Read ``application`` first, then ``calls`` (who asks, and one effect for one key), ``problems`` and
one resource, such as ``jobs``. Nothing here holds a rule or a query: those are editorial's and the
engine's.
"""

from publisher.api.application import app

__all__ = ["app"]
