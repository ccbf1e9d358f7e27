"""Facebook Pages, through the Graph API."""

from publisher.adapters.facebook_pages.adapter import FacebookPages

__all__ = ["FacebookPages"]
