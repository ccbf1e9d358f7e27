"""Decodes a picture and encodes it anew: the program of a process of its own.

A decoder is the part of a page that strangers may feed, and the part that was written in C. So it
runs where it has little to take: a limit on memory, time, files and output, no children, nothing of
our environment, and no file but the one that came and the one it makes. The caps are looked at
before a pixel is decoded; the limits are for what lies about its size.

Run as a script, it reads standard input and writes standard output, both regular files, and says
on the last line of standard error, in JSON, what it made or why not. It imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import warnings
from enum import StrEnum
from importlib import import_module
from io import BytesIO
from typing import IO, Any, Final

from PIL import GifImagePlugin, Image, ImageCms, ImageOps, JpegImagePlugin

SIDE: Final = 16_000
"""Pixels along one side."""
PIXELS: Final = 50_000_000
"""Of one picture: what a telephone's largest sensor of the usual kind gives."""
FRAMES: Final = 500
ANIMATION_PIXELS: Final = 100_000_000
"""Of all frames together."""
MEMORY_BYTES: Final = 2 << 30
CPU_SECONDS: Final = 60
OUTPUT_BYTES: Final = 200_000_000
_FILES: Final = 16
_QUALITY: Final = 90

_FORMATS: Final = ("JPEG", "PNG", "GIF", "WEBP")
for _name in ("MpoImagePlugin", "PngImagePlugin", "WebPImagePlugin"):
    import_module(f"PIL.{_name}")  # before the limits hold

_TYPES: Final = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",  # a JPEG with more pictures behind it, as telephones write
    "PNG": "image/png",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
_PNG_MODES: Final = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
_GIF_END: Final = b";"


class Why(StrEnum):
    """Why a picture is not taken."""

    SIDE = "side"
    PIXELS = "pixels"
    FRAMES = "frames"
    ANIMATION = "animation"
    ANIMATED = "animated"
    OUTPUT = "output"
    MEMORY = "memory"
    UNREADABLE = "unreadable"


class Refused(Exception):
    """A picture that is not taken, and the numbers that go with it."""

    def __init__(self, why: Why, **numbers: int) -> None:
        super().__init__(why)
        self.why = why
        self.numbers = numbers


def recode(source: IO[bytes], target: IO[bytes]) -> dict[str, object]:
    """Decode ``source`` and encode it into ``target``; return its type, width, height and frames.

    What is seen stays: turned as EXIF says, in sRGB. EXIF, GPS, XMP, comments, thumbnails, colour
    profiles and whatever follows the picture do not. Raises ``Refused``, ``MemoryError``, and
    whatever Pillow raises for what it cannot read.
    """
    Image.MAX_IMAGE_PIXELS = None  # looked at here, and told in better words
    _require_whole(source)
    source.seek(0)
    with Image.open(source, formats=_FORMATS) as image:
        media_type = _TYPES[image.format or ""]
        _require_size(image)
        if media_type == "image/gif":
            width, height, frames = _animation(image, target)
        else:
            if media_type != "image/jpeg" and getattr(image, "n_frames", 1) > 1:
                raise Refused(Why.ANIMATED)
            width, height, frames = *_still(image, media_type, source, target), 1
    target.flush()
    return {"type": media_type, "width": width, "height": height, "frames": frames}


def _require_whole(source: IO[bytes]) -> None:
    """Refuse a PNG or a GIF that was cut off: Pillow shows what there is of them."""
    with Image.open(source, formats=_FORMATS) as image:
        _require_size(image)
        if image.format == "PNG":
            image.verify()
        if image.format != "GIF":
            return
    source.seek(-min(source.seek(0, os.SEEK_END), 1024), os.SEEK_END)
    if not source.read().rstrip(b"\0\r\n").endswith(_GIF_END):
        raise Refused(Why.UNREADABLE)


def _require_size(image: Image.Image) -> None:
    width, height = image.size
    if max(width, height) > SIDE:
        raise Refused(Why.SIDE, width=width, height=height)
    if width * height > PIXELS:
        raise Refused(Why.PIXELS, width=width, height=height)


def _still(
    image: Image.Image, media_type: str, source: IO[bytes], target: IO[bytes]
) -> tuple[int, int]:
    how = _jpeg_settings(image) if media_type == "image/jpeg" else {}
    if media_type == "image/webp":
        image.load()  # before the file is read past it
        lossless = _is_lossless(source)
        # Where nothing is lost, quality is how hard it tries to be small.
        how = {"lossless": lossless, "quality": 40 if lossless else _QUALITY, "method": 2}
    image.load()
    clean = _fitting(_in_srgb(_upright(image)), media_type)
    transparency = clean.info.get("transparency") if media_type == "image/png" else None
    clean.info = {} if transparency is None else {"transparency": transparency}
    clean.save(target, media_type.removeprefix("image/").upper(), **how)
    return clean.size


def _upright(image: Image.Image) -> Image.Image:
    """Turned as EXIF says. What cannot be read there counts for nothing, as in every viewer."""
    try:
        return ImageOps.exif_transpose(image)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - Pillow names no error for it
        return image


def _jpeg_settings(image: Image.Image) -> dict[str, Any]:
    """Its own quantisation: encoded so again, it loses least and does not grow."""
    tables = getattr(image, "quantization", None)
    sampling = JpegImagePlugin.get_sampling(image)
    how: dict[str, Any] = {"progressive": bool(image.info.get("progressive"))}
    if image.mode not in ("L", "RGB") or not tables:
        return how | {"quality": _QUALITY}
    return how | {"qtables": tables, "subsampling": 0 if sampling == 0 else 2}


def _is_lossless(file: IO[bytes]) -> bool:
    """Whether a WebP says so: the bitstream ``VP8L`` among its chunks (RFC 9649, section 2.6)."""
    file.seek(12)
    while len(header := file.read(8)) == 8:  # noqa: PLR2004 - a name and a size
        if header[:4] in (b"VP8L", b"VP8 "):
            return header[:4] == b"VP8L"
        size = int.from_bytes(header[4:], "little")
        file.seek(size + size % 2, os.SEEK_CUR)
    return False


def _in_srgb(image: Image.Image) -> Image.Image:
    """The colours its profile means. A profile that cannot be used counts for none."""
    profile = image.info.get("icc_profile")
    if not profile or image.mode not in ("L", "RGB", "RGBA", "CMYK"):
        return image
    try:
        meant = ImageCms.ImageCmsProfile(BytesIO(profile))
        if "sRGB" in ImageCms.getProfileDescription(meant):
            return image
        converted = ImageCms.profileToProfile(
            image,
            meant,
            ImageCms.createProfile("sRGB"),
            outputMode="RGBA" if image.mode == "RGBA" else "RGB",
        )
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return image
    if converted is None:
        return image
    return converted.convert("L") if image.mode == "L" else converted


def _fitting(image: Image.Image, media_type: str) -> Image.Image:
    """The picture in a mode that its format can hold."""
    if image.mode.startswith("I"):
        # Sixteen bits of grey; ``convert`` would cut them off instead of scaling them.
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    match media_type:
        case "image/jpeg":
            return image if image.mode in ("L", "RGB") else image.convert("RGB")
        case "image/png":
            return image if image.mode in _PNG_MODES else image.convert("RGBA")
        case _:
            has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
            return image.convert("RGBA" if has_alpha else "RGB")


def _animation(image: Image.Image, target: IO[bytes]) -> tuple[int, int, int]:
    """Encode every frame of a GIF, with its time and the number of rounds."""
    assert isinstance(image, GifImagePlugin.GifImageFile)  # noqa: S101 - its format says so
    for number in range(FRAMES + 1):
        try:
            image.seek(number)
        except EOFError:
            break
        _require_size(image)
        pixels = (number + 1) * image.width * image.height
        if pixels > ANIMATION_PIXELS:
            raise Refused(Why.ANIMATION, width=image.width, height=image.height)
    else:
        raise Refused(Why.FRAMES)
    frames = number
    image.seek(0)
    image.save(target, "GIF", save_all=frames > 1, comment=b"")
    return image.width, image.height, frames


def _limit() -> None:
    for what, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, OUTPUT_BYTES),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        hard = resource.getrlimit(what)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (allowed, allowed))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write too many is an error then


def _main() -> None:
    _limit()
    warnings.simplefilter("ignore")
    told: dict[str, object]
    with os.fdopen(0, "rb") as source, os.fdopen(1, "wb") as target:
        try:
            told = recode(source, target)
        except Refused as refused:
            told = {"refused": refused.why, **refused.numbers}
        except MemoryError:
            told = {"refused": Why.MEMORY}
        except Exception as error:  # noqa: BLE001 - whatever Pillow meets, the picture is no good
            full = os.fstat(1).st_size >= OUTPUT_BYTES
            told = {"refused": Why.OUTPUT if full else Why.UNREADABLE, "met": type(error).__name__}
    # On a line of its own: libraries of C may have said something before.
    sys.stderr.write(f"\n{json.dumps(told)}")


if __name__ == "__main__":
    _main()
