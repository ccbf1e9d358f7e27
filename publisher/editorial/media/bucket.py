"""Media as objects of an S3-compatible store. Needs the extra ``publisher[s3]``.

Each is one PUT, which S3 takes up to 5 GB and our own caps keep far below, so there are no parts
to complete or to sweep away. The store is told the SHA-256 and refuses what came through damaged.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, BinaryIO, Final

from botocore.exceptions import ClientError
from sqlalchemy import Connection, Engine

from publisher.buckets.address import BucketAddress
from publisher.buckets.client import UNREACHED, client, refusal_code
from publisher.config import Settings
from publisher.editorial.media.refusal import MediaLost, MediaUnreachable
from publisher.editorial.media.storage import CHUNK_BYTES, Measured, Place, object_name
from publisher.words import N_, _

_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 60
_TRIES: Final = 3
_HINTS: Final = {
    "NoSuchBucket": N_("Make the bucket, or name another in PUBLISHER_MEDIA."),
    "AccessDenied": N_(
        "Allow these credentials s3:GetObject, s3:PutObject and s3:DeleteObject on the prefix and"
        " s3:ListBucket on its bucket: without the last, an object that is not there looks"
        " forbidden."
    ),
}
_OTHERWISE: Final = N_("See to the store, or name another in PUBLISHER_MEDIA.")


class InBucket:
    """A part of a bucket; credentials are found as every AWS tool finds them."""

    def __init__(self, at: BucketAddress, settings: Settings) -> None:
        """Connect to nothing yet. Raises ``MediaUnreachable`` for an unknown AWS profile."""
        self._at = at
        with self._explained():
            self._client: Any = client(
                at,
                settings,
                connect_seconds=_CONNECT_SECONDS,
                read_seconds=_READ_SECONDS,
                tries=_TRIES,
            )

    @property
    def place(self) -> Place:
        """See ``Storage``."""
        return "s3"

    @property
    def name(self) -> str:
        """The bucket and the prefix."""
        return f"s3://{self._at.bucket}/{self._at.key}"

    def upload(self, sha256: str, file: BinaryIO, size: int) -> None:
        """Put the object over whatever is there, which may be damaged. See ``Storage``."""
        measured = Measured(file)
        for _chunk in measured:
            pass  # read before anything is sent: botocore reads it once more
        measured.require(sha256, size)
        file.seek(0)
        with self._explained():
            self._client.put_object(
                Bucket=self._at.bucket,
                Key=self._key(object_name(sha256)),
                Body=file,
                ContentLength=size,
                ContentType="application/octet-stream",
                ChecksumSHA256=base64.b64encode(bytes.fromhex(sha256)).decode(),
            )

    def write(self, conn: Connection, sha256: str, file: BinaryIO, size: int) -> None:
        """Do nothing more."""

    def read(self, engine: Engine, sha256: str, size: int) -> Iterator[bytes]:  # noqa: ARG002 - as the port has it
        """Yield the object in chunks. See ``Storage``."""
        key = self._key(object_name(sha256))
        with self._explained():
            try:
                answer = self._client.get_object(Bucket=self._at.bucket, Key=key)
            except ClientError as error:
                if refusal_code(error) == "NoSuchKey":
                    raise MediaLost(sha256, self.name) from None
                raise
        with closing(answer["Body"]) as body:
            chunks = body.iter_chunks(CHUNK_BYTES)
            while True:
                with self._explained():
                    chunk = next(chunks, b"")
                if not chunk:
                    return
                yield chunk

    def probe(self) -> None:
        """Put an object and take it away. See ``Storage``."""
        where = {"Bucket": self._at.bucket, "Key": self._key(f"probe/{secrets.token_hex(8)}")}
        with self._explained():
            self._client.put_object(**where, Body=b"probe")
            self._client.delete_object(**where)

    def _key(self, name: str) -> str:
        return f"{self._at.key}/{name}" if self._at.key else name

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (MediaLost, MediaUnreachable):
            raise
        except ClientError as error:
            code = refusal_code(error)
            message = _("The media store {name} refused: {code}. {hint}").format(
                name=self.name, code=code, hint=_(_HINTS.get(code, _OTHERWISE))
            )
            raise MediaUnreachable(message) from error
        except UNREACHED as error:
            # The kind alone: what botocore says may hold a whole URL, or a proxy's password.
            message = _(
                "The media store {name} cannot be reached: {kind}. See to the network, the endpoint"
                " in PUBLISHER_MEDIA, and this process's AWS credentials."
            ).format(name=self.name, kind=type(error).__name__)
            raise MediaUnreachable(message) from None

    def __repr__(self) -> str:
        return f"<media in {self.name}>"
