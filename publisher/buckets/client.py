"""botocore's S3 client as we use it. Needs the extra ``publisher[s3]``."""

from __future__ import annotations

import logging
import os
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.session import get_session
from urllib3.exceptions import HTTPError

from publisher.buckets.address import BucketAddress
from publisher.config import Settings

UNREACHED: Final = (BotoCoreError, HTTPClientError, HTTPError, OSError, ValueError)
"""What is raised but a ``ClientError``, the store's refusal. Only the kind may be told: what
botocore says may hold a whole URL, or a proxy's password."""

# At DEBUG they write whole requests, with the session's token in them.
for _name in ("botocore", "urllib3"):
    logging.getLogger(_name).setLevel(logging.WARNING)


def client(
    at: BucketAddress,
    settings: Settings,
    *,
    connect_seconds: float,
    read_seconds: float,
    tries: int,
) -> Any:  # noqa: ANN401 - botocore makes its classes
    """A client for the store of ``at``; credentials are found as every AWS tool finds them.

    Nothing is connected to yet. Raises ``BotoCoreError``, for an unknown AWS profile say.
    """
    proxy = settings.proxy_url.get_secret_value() if settings.proxy_url else None
    return get_session().create_client(
        "s3",
        endpoint_url=at.endpoint,
        region_name=at.region or os.environ.get("AWS_REGION"),
        config=Config(
            connect_timeout=connect_seconds,
            read_timeout=read_seconds,
            retries={"total_max_attempts": tries, "mode": "standard"},
            # Others than Amazon often have no names for buckets, and not every checksum.
            s3={"addressing_style": "path" if at.endpoint else "auto"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            # As everywhere here: the usual proxy variables are not read.
            proxies={"https": proxy, "http": proxy} if proxy else {},
        ),
    )


def refusal_code(error: ClientError) -> str:
    """The store's own word for why it refused."""
    return str(error.response.get("Error", {}).get("Code", "no reason"))
