"""Pictures and videos: taken in, kept by the SHA-256 of their bytes, and read back whole.

``intake.add`` and ``intake.add_from_url`` take in what comes from outside; ``Library`` keeps, finds
and reads; ``storage`` is the place that ``PUBLISHER_MEDIA`` names; ``signing`` makes addresses for
platforms that fetch.
"""

from publisher.editorial.media.address import (
    MediaExtraMissing,
    MediaStorageUnusable,
    storage,
)
from publisher.editorial.media.fetch import Fetcher
from publisher.editorial.media.files import MediaFile, inspect
from publisher.editorial.media.intake import MOST_BYTES, add, add_from_url, chunks_of
from publisher.editorial.media.kinds import KNOWN, kind_of, sniff, type_of_name
from publisher.editorial.media.library import Kept, Library, Piece
from publisher.editorial.media.refusal import (
    BytesChanged,
    MediaLost,
    MediaRefused,
    MediaUnreachable,
)
from publisher.editorial.media.signing import SignatureRefused, sign, verify
from publisher.editorial.media.storage import CHUNK_BYTES, Storage

__all__ = [
    "CHUNK_BYTES",
    "KNOWN",
    "MOST_BYTES",
    "BytesChanged",
    "Fetcher",
    "Kept",
    "Library",
    "MediaExtraMissing",
    "MediaFile",
    "MediaLost",
    "MediaRefused",
    "MediaStorageUnusable",
    "MediaUnreachable",
    "Piece",
    "SignatureRefused",
    "Storage",
    "add",
    "add_from_url",
    "chunks_of",
    "inspect",
    "kind_of",
    "sign",
    "sniff",
    "storage",
    "type_of_name",
    "verify",
]
