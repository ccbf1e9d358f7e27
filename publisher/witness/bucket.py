"""The witness as one object of an S3-compatible store, written only over what was read.

Conditional writes (``If-None-Match: *`` and ``If-Match``) make it safe for a fleet; see
"Conditional writes" in Amazon's S3 user guide. A store that takes a write against its condition
is found out when the object is first made, and refused. Needs the extra ``publisher[s3]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Final

from botocore.exceptions import ClientError

from publisher.buckets.client import UNREACHED, client, refusal_code
from publisher.config import Settings
from publisher.engine.witness import (
    Held,
    Record,
    WitnessConflict,
    WitnessUnreachable,
)
from publisher.witness.address import ObjectAt

_CONNECT_SECONDS: Final = 3
_READ_SECONDS: Final = 5
_TRIES: Final = 2
_READ_BYTES: Final = 65_536
_OVERTAKEN: Final = {HTTPStatus.PRECONDITION_FAILED, HTTPStatus.CONFLICT}
_HINTS: Final = {
    "NoSuchBucket": "Make the bucket, or name another in PUBLISHER_WITNESS.",
    "AccessDenied": (
        "Allow these credentials s3:GetObject and s3:PutObject on the object and s3:ListBucket on"
        " its bucket: without the last, an object that is not there looks forbidden."
    ),
}


class Object:
    """A witness in a bucket; credentials are found as every AWS tool finds them."""

    def __init__(self, at: ObjectAt, settings: Settings) -> None:
        """Connect to nothing yet. Raises ``WitnessUnreachable`` for an unknown AWS profile."""
        self._at = at
        with self._explained():
            self._client = client(
                at,
                settings,
                connect_seconds=_CONNECT_SECONDS,
                read_seconds=_READ_SECONDS,
                tries=_TRIES,
            )

    @property
    def name(self) -> str:
        """The bucket and the key."""
        return f"s3://{self._at.bucket}/{self._at.key}"

    def read(self) -> Held | None:
        """The record; None where there is no object.

        Raises ``WitnessUnreadable``, ``WitnessUnreachable``.
        """
        with self._explained():
            found = self._get()
        if found is None:
            return None
        content, stamp = found
        return Held(Record.from_json(content), stamp)

    def write(self, record: Record, *, over: str | None) -> str:
        """Put ``record`` in the place of what ``over`` stands for.

        Raises ``WitnessConflict``, ``WitnessUnreachable``.
        """
        content = record.to_json()
        with self._explained():
            if over is not None:
                return self._put(content, IfMatch=over)
            stamp = self._put(content, IfNoneMatch="*")
            with suppress(WitnessConflict):
                self._put(content, IfNoneMatch="*")
                message = (
                    f"The store of the witness {self.name} takes a write that its condition"
                    " forbids, so two processes could overwrite each other. Use one with"
                    " conditional writes."
                )
                raise WitnessUnreachable(message)
            return stamp

    def replace(self, record: Record) -> str:
        """Put ``record`` in the place of whatever is there, which is copied beside if it can be.

        Raises ``WitnessUnreachable``.
        """
        with suppress(WitnessUnreachable), self._explained():
            found = self._get()
            if found is not None:
                aside = f"{self._at.key}.old"
                self._client.put_object(Bucket=self._at.bucket, Key=aside, Body=found[0])
        with self._explained():
            return self._put(record.to_json())

    def _get(self) -> tuple[bytes, str] | None:
        try:
            answer = self._client.get_object(Bucket=self._at.bucket, Key=self._at.key)
        except ClientError as error:
            if refusal_code(error) == "NoSuchKey":
                return None
            raise
        is_short = answer.get("ContentLength", _READ_BYTES) < _READ_BYTES
        with answer["Body"] as body:
            # Read to its end where it can be: only then is one that was cut found to be.
            return body.read(None if is_short else _READ_BYTES), str(answer["ETag"])

    def _put(self, content: bytes, **condition: str) -> str:
        try:
            answer = self._client.put_object(
                Bucket=self._at.bucket,
                Key=self._at.key,
                Body=content,
                ContentType="application/json",
                **condition,
            )
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if condition and (status in _OVERTAKEN or refusal_code(error) == "NoSuchKey"):
                message = f"Another process has written the witness {self.name}."
                raise WitnessConflict(message) from error
            raise
        return str(answer["ETag"])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            hint = _HINTS.get(refusal_code(error), "See to the store, or name another witness.")
            message = f"The witness {self.name} was refused: {refusal_code(error)}. {hint}"
            raise WitnessUnreachable(message) from error
        except UNREACHED as error:
            message = (
                f"The witness {self.name} cannot be reached: {type(error).__name__}. See to the"
                " network, the endpoint in PUBLISHER_WITNESS, and this process's AWS credentials."
            )
            raise WitnessUnreachable(message) from None

    def __repr__(self) -> str:
        return f"<witness {self.name}>"
