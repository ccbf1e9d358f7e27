"""Encodes a picture anew, in a process of its own (``recoder``), and says why where it cannot.

A process and not a thread: limits on memory and time hold for processes only, a fault in a decoder
of C ends that process and not ours, and what it might be made to do finds no key, no connection and
no environment there. It costs a tenth of a second. Two run at once in one of our processes, so that
ten uploads do not take ten times the memory.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import BinaryIO, Final

import structlog

from publisher.editorial.media.kinds import HEAD_BYTES, sniff
from publisher.editorial.media.refusal import MediaRefused
from publisher.words import N_, _

_PROGRAM: Final = Path(__file__).with_name("recoder.py")
_SECONDS: Final = 300.0
"""On a busy machine; the process's own limit is on what it computes."""
_AT_ONCE: Final = BoundedSemaphore(2)
_TOLD_BYTES: Final = 4_096
_SPENT: Final = frozenset({signal.SIGKILL, signal.SIGXCPU})

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Picture:
    """What was made: media type, pixels, and 1 frame unless it moves."""

    type: str
    width: int
    height: int
    frames: int


_REFUSALS: Final[dict[str, tuple[str, str, str]]] = {
    "side": (
        "media-too-many-pixels",
        N_("This picture is {width:,} × {height:,} pixels; a side may have 16,000."),
        N_("Make it smaller."),
    ),
    "pixels": (
        "media-too-many-pixels",
        N_("This picture is {width:,} × {height:,} pixels; 50 million are taken in all."),
        N_("Make it smaller."),
    ),
    "frames": (
        "media-too-many-frames",
        N_("This picture moves through more than 500 frames."),
        N_("Shorten it, or give a video."),
    ),
    "animation": (
        "media-too-many-frames",
        N_("This picture moves, and its frames have more than 100 million pixels together."),
        N_("Shorten it, make it smaller, or give a video."),
    ),
    "animated": (
        "media-animated",
        N_("This picture moves, and platforms show no PNG or WebP moving."),
        N_("Give a GIF or a video, or one of its frames."),
    ),
    "output": (
        "media-too-large",
        N_("This picture becomes larger than can be kept when it is encoded anew."),
        N_("Make it smaller."),
    ),
    "memory": (
        "media-too-demanding",
        N_("This picture needs more memory or time than it may take."),
        N_("Save it anew in a program for pictures, or make it smaller."),
    ),
    "unreadable": (
        "media-unreadable",
        N_("This picture cannot be read: it is cut off or damaged."),
        N_("Save it anew in a program for pictures, and give that."),
    ),
}


def encode_anew(came: BinaryIO, made: BinaryIO, *, field: str) -> Picture:
    """Decode ``came`` and write it, encoded anew, into the empty ``made``; both are real files.

    Raises ``MediaRefused``.
    """
    came.flush()
    came.seek(0)
    with tempfile.TemporaryFile() as said, _AT_ONCE:
        try:
            code = subprocess.run(  # noqa: S603 - our own program, on open files
                [sys.executable, "-I", str(_PROGRAM)],
                stdin=came,
                stdout=made,
                stderr=said,
                cwd="/",
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                timeout=_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise _refused({}, field, why="memory") from None
        said.seek(max(0, said.seek(0, os.SEEK_END) - _TOLD_BYTES))
        told = _read(said.read().rpartition(b"\n")[2])
    if code != 0 or told is None:
        # Killed for its time, or by a fault of a decoder: whatever it was, the file is no good.
        _log.warning("media.decoder_ended", code=code)
        raise _refused({}, field, why="memory" if -code in _SPENT else "unreadable")
    if "refused" in told:
        _log.info("media.refused", why=told["refused"], met=told.get("met"))
        raise _refused(told, field, why=str(told["refused"]))
    picture = _made(told, made)
    if picture is None:
        _log.warning("media.decoder_lied")
        raise _refused({}, field, why="unreadable")
    return picture


def _made(told: dict[str, str | int], made: BinaryIO) -> Picture | None:
    """What the process says that it made; None where its bytes are something else."""
    made.seek(0)
    media_type = sniff(made.read(HEAD_BYTES))
    try:
        numbers = [int(told[name]) for name in ("width", "height", "frames")]
    except (KeyError, ValueError, TypeError):
        return None
    if media_type is None or media_type != told.get("type") or min(numbers) < 1:
        return None
    return Picture(media_type, *numbers)


_KEPT: Final = ("LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
"""What an interpreter may need to start; nothing with a secret in it."""


def _read(text: bytes) -> dict[str, str | int] | None:
    try:
        told = json.loads(text)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _refused(numbers: dict[str, str | int], field: str, *, why: str) -> MediaRefused:
    code, what, fix = _REFUSALS.get(why, _REFUSALS["unreadable"])
    told = {name: numbers.get(name, 0) for name in ("width", "height")}
    return MediaRefused(_(what).format(**told), _(fix), code=code, field=field)
