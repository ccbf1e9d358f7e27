"""What is taken in, what it becomes, and what is refused with nothing stored."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageDraw

from publisher.editorial.media import (
    CHUNK_BYTES,
    Kept,
    Library,
    MediaRefused,
    add,
    chunks_of,
    intake,
    kinds,
    pictures,
    recoder,
)
from tests.editorial.media.conftest import Stand, encoded, noise, opened

Rows = Callable[[], dict[str, int]]
NONE = {"media": 0, "media_uploads": 0, "media_chunks": 0}
CANARY = b"canary-of-a-secret-place"
ORIENTATION, GPS, MAKER, COMMENT = 0x0112, 0x8825, 0x927C, 0x9286


def take(library: Library, data: bytes, **how: str) -> Kept:
    return add(library, [data], who="editor", **how)


def stored(library: Library, kept: Kept) -> bytes:
    return b"".join(library.read(kept.sha256))


def halves(first: str = "red", second: str = "blue") -> Image.Image:
    """Forty by twenty, its left half in one colour and its right half in another."""
    image = Image.new("RGB", (40, 20), first)
    ImageDraw.Draw(image).rectangle((20, 0, 39, 19), second)
    return image


def told() -> bytes:
    """EXIF that tells a place, a device and more, and says that the picture lies on its side."""
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    exif[0x010E] = CANARY.decode()
    exif[MAKER] = CANARY
    exif.get_ifd(GPS).update({1: "N", 2: (52.0, 31.0, 12.0), 3: "E", 4: (13.0, 24.0, 18.0)})
    return exif.tobytes()


def near(pixel: object, wanted: tuple[int, ...], most: int = 12) -> bool:
    assert isinstance(pixel, tuple)
    return all(abs(a - b) <= most for a, b in zip(pixel, wanted, strict=True))


@cache
def animation(count: int = 4, **how: object) -> bytes:
    frames = [noise(30, 20).convert("P", palette=Image.Palette.ADAPTIVE) for _ in range(count)]
    return encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], **how)


def video(*boxes: tuple[bytes, bytes], brand: bytes = b"isom") -> bytes:
    parts = ((b"ftyp", brand + bytes(4)), *boxes)
    return b"".join(struct.pack(">I", len(body) + 8) + name + body for name, body in parts)


WHOLE_VIDEO = video((b"moov", b"index"), (b"mdat", bytes(2 * CHUNK_BYTES)))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_picture_stands_upright_and_tells_nothing(shelf: Library, kind: str) -> None:
    how: dict[str, object] = {"exif": told()}
    if kind == "JPEG":
        how |= {"comment": CANARY, "quality": 95}
    if kind == "WEBP":
        how |= {"xmp": CANARY, "lossless": True}
    came = encoded(halves(), kind, **how)
    assert CANARY in came
    kept = take(shelf, came)
    data = stored(shelf, kept)
    picture = opened(data)
    assert (kept.width, kept.height, kept.frames) == (20, 40, 1) == (*picture.size, 1)
    assert kept.type == f"image/{kind.lower()}"
    rgb = picture.convert("RGB")
    assert near(rgb.getpixel((10, 5)), (255, 0, 0))
    assert near(rgb.getpixel((10, 35)), (0, 0, 255))
    assert CANARY not in data
    assert b"Exif" not in data
    assert not picture.getexif()
    assert not {"exif", "xmp", "comment", "icc_profile", "photoshop"} & picture.info.keys()


def test_the_hash_of_what_came_is_kept_beside(shelf: Library) -> None:
    import hashlib  # noqa: PLC0415 - of this test alone

    came = encoded(noise(), "JPEG")
    kept = take(shelf, came)
    assert kept.original_sha256 == hashlib.sha256(came).hexdigest()
    assert kept.sha256 == hashlib.sha256(stored(shelf, kept)).hexdigest()
    assert kept.size == len(stored(shelf, kept))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_the_same_picture_becomes_the_same_bytes(shelf: Library, kind: str, rows: Rows) -> None:
    came = encoded(noise(), kind)
    assert take(shelf, came) == take(shelf, came)
    assert rows()["media_uploads"] == 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_encoding_anew_costs_little(shelf: Library, kind: str) -> None:
    image = Image.linear_gradient("L").resize((200, 150)).convert("RGB")
    came = encoded(image, kind)
    kept = take(shelf, came)
    picture = opened(stored(shelf, kept)).convert("RGB")
    before = opened(came).convert("RGB")
    worst = max(abs(a - b) for a, b in zip(picture.tobytes(), before.tobytes(), strict=True))
    assert worst <= (0 if kind == "PNG" else 6)
    assert kept.size <= 1.3 * len(came)


def test_colours_are_those_its_profile_means(shelf: Library) -> None:
    # A profile that means something else by every number: the primaries of sRGB, turned round.
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    data = bytearray(lab.tobytes())
    red, blue = data.index(b"rXYZ"), data.index(b"bXYZ")
    data[red : red + 4], data[blue : blue + 4] = b"bXYZ", b"rXYZ"
    name = data.index("sRGB".encode("utf-16-be"))
    data[name : name + 8] = "mRGB".encode("utf-16-be")
    came = encoded(halves(), "PNG", icc_profile=bytes(data))
    picture = opened(stored(shelf, take(shelf, came)))
    assert near(picture.getpixel((5, 5)), (0, 0, 255))
    assert near(picture.getpixel((35, 5)), (255, 0, 0))
    assert "icc_profile" not in picture.info


@pytest.mark.parametrize(
    ("image", "kind", "mode"),
    [
        (Image.new("CMYK", (9, 7), (0, 255, 255, 0)), "JPEG", "RGB"),
        (Image.new("L", (9, 7), 200), "JPEG", "L"),
        (Image.new("I;16", (9, 7), 40_000), "PNG", "L"),
        (Image.new("1", (9, 7), 1), "PNG", "1"),
        (Image.new("LA", (9, 7), (90, 128)), "PNG", "LA"),
        (Image.new("RGBA", (9, 7), (255, 0, 0, 128)), "PNG", "RGBA"),
        (Image.new("RGBA", (9, 7), (255, 0, 0, 128)), "WEBP", "RGBA"),
        (noise().convert("P"), "PNG", "P"),
    ],
)
def test_every_kind_of_picture(shelf: Library, image: Image.Image, kind: str, mode: str) -> None:
    picture = opened(stored(shelf, take(shelf, encoded(image, kind))))
    assert picture.mode == mode
    assert picture.size == image.size
    expected = {"I;16": 156, "CMYK": (254, 0, 0), "1": 255}.get(image.mode, image.getpixel((3, 3)))
    pixel = picture.getpixel((3, 3))
    if isinstance(expected, tuple):
        assert near(pixel, expected)
    else:
        assert pixel == expected


def test_transparency_of_one_colour_stays(shelf: Library) -> None:
    came = encoded(halves().convert("P"), "PNG", transparency=0)
    after = opened(stored(shelf, take(shelf, came)))
    assert after.convert("RGBA").tobytes() == opened(came).convert("RGBA").tobytes()


def test_a_gif_moves_as_it_did(shelf: Library) -> None:
    came = animation(duration=(50, 60, 70, 80), loop=3, comment=CANARY)
    kept = take(shelf, came)
    data = stored(shelf, kept)
    assert (kept.type, kept.frames, kept.width) == ("image/gif", 4, 30)
    before, after = Image.open(io.BytesIO(came)), Image.open(io.BytesIO(data))
    assert CANARY in came
    assert CANARY not in data
    assert after.info["loop"] == 3
    for number in range(4):
        before.seek(number)
        after.seek(number)
        assert after.info["duration"] == before.info["duration"]
        assert after.convert("RGB").tobytes() == before.convert("RGB").tobytes()


def test_pictures_behind_a_picture_are_left_out(shelf: Library) -> None:
    came = encoded(halves(), "MPO", save_all=True, append_images=[noise(40, 20)])
    kept = take(shelf, came)
    assert (kept.type, kept.frames, opened(stored(shelf, kept)).format) == ("image/jpeg", 1, "JPEG")


def test_a_film_behind_a_picture_is_left_out(shelf: Library) -> None:
    came = encoded(noise(), "JPEG") + WHOLE_VIDEO
    assert b"ftyp" not in stored(shelf, take(shelf, came))


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0garbage",
        b"Exif\0\0II*\0\xff\xff\xff\x7f",
        b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12",
    ],
)
def test_what_is_told_badly_counts_for_nothing(shelf: Library, exif: bytes) -> None:
    picture = opened(stored(shelf, take(shelf, encoded(halves(), "JPEG", exif=exif))))
    assert picture.size == (40, 20)
    assert not picture.getexif()


def test_a_name_and_a_size_of_chunks_do_not_matter(shelf: Library) -> None:
    came = encoded(noise(), "PNG")
    bytewise = (came[at : at + 1] for at in range(len(came)))
    assert add(shelf, bytewise, who="editor") == take(shelf, came)
    assert add(shelf, chunks_of(io.BytesIO(came)), who="editor") == take(shelf, came)


def test_a_video_is_kept_as_it_came(library: Library) -> None:
    kept = take(library, WHOLE_VIDEO)
    assert stored(library, kept) == WHOLE_VIDEO
    assert (kept.type, kept.width, kept.sha256) == ("video/mp4", None, kept.original_sha256)
    assert take(library, video((b"moov", b""), (b"moof", b""), brand=b"qt  ") + bytes(4))


def archive(comment: bytes = b"") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("a.txt", "inside")
        made.comment = comment
    return file.getvalue()


def bomb() -> bytes:
    """A PNG of 2.5 thousand million pixels in some bytes."""
    rows = zlib.compressobj(9)
    data = b"".join(rows.compress(bytes(6251)) for _ in range(2000)) + rows.flush()

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    head = struct.pack(">IIBBBBB", 15_000, 15_000, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def text_bomb() -> bytes:
    """A PNG whose comment unpacks to a gigabyte."""
    packer = zlib.compressobj(9)
    body = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    chunk = b"zTXtx\0\0" + body
    packed = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    came = encoded(noise(), "PNG")
    return came[:33] + packed + came[33:]


JPEG, PNG, WEBP = (encoded(noise(), kind) for kind in ("JPEG", "PNG", "WEBP"))

TELLING = [
    encoded(noise(), "JPEG", exif=told(), comment=CANARY),
    encoded(noise(), "PNG", exif=told()),
    encoded(noise(), "WEBP", exif=told(), xmp=CANARY),
    animation(comment=CANARY),
]

HOSTILE: dict[str, tuple[bytes, str, str]] = {
    "nothing": (b"", "media-empty", "empty"),
    "text": (b"hello", "media-type-unknown", "neither a picture nor a video"),
    "svg": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "media-type-unknown", "SVG"),
    "xml": (b'<?xml version="1.0"?><svg/>', "media-type-unknown", "SVG"),
    "page": (b"<!DOCTYPE html><script>", "media-type-unknown", "a web page"),
    "zip": (archive(), "media-type-unknown", "a ZIP archive"),
    "pdf": (b"%PDF-1.7 and more of it, as it goes", "media-type-unknown", "a PDF document"),
    "heic": (b"\0\0\0\x18ftypheic" + bytes(40), "media-type-unknown", "HEIC"),
    "sound": (b"\0\0\0\x18ftypM4A " + bytes(40), "media-type-unknown", "sound"),
    "tiff": (encoded(noise(), "TIFF"), "media-type-unknown", "a TIFF picture"),
    "bmp": (encoded(noise(), "BMP"), "media-type-unknown", "a BMP picture"),
    "mark of a JPEG": (b"\xff\xd8\xff" + bytes(100), "media-unreadable", "cut off or damaged"),
    "mark of a PNG": (PNG[:8] + bytes(100), "media-unreadable", "cut off or damaged"),
    "cut JPEG": (JPEG[: len(JPEG) // 2], "media-unreadable", "cut off"),
    "cut PNG": (PNG[: len(PNG) // 2], "media-unreadable", "cut off"),
    "PNG without its end": (PNG[:-12], "media-unreadable", "cut off"),
    "damaged PNG": (PNG[:60] + b"\0\0\0\0" + PNG[64:], "media-unreadable", "damaged"),
    "cut WebP": (WEBP[: len(WEBP) // 2], "media-unreadable", "cut off"),
    "cut GIF": (animation()[:-40], "media-unreadable", "cut off"),
    "wide": (encoded(Image.new("1", (50_000, 1)), "PNG"), "media-too-many-pixels", "50,000 × 1"),
    "tall": (encoded(Image.new("L", (1, 50_000)), "JPEG"), "media-too-many-pixels", "50,000"),
    "bomb": (bomb(), "media-too-many-pixels", "15,000 × 15,000"),
    "wide GIF": (b"GIF89a" + struct.pack("<HH", 50_000, 50_000) + animation()[10:],
                 "media-too-many-pixels", "50,000"),
    "text bomb": (text_bomb(), "media-unreadable", "damaged"),
    "many frames": (animation(501), "media-too-many-frames", "more than 500 frames"),
    "moving PNG": (encoded(noise(), "PNG", save_all=True, append_images=[noise()]),
                   "media-animated", "Give a GIF"),
    "moving WebP": (encoded(noise(), "WEBP", save_all=True, append_images=[noise()]),
                    "media-animated", "Give a GIF"),
    "GIF and ZIP": (animation() + archive(), "media-polyglot", "a ZIP archive"),
    "JPEG and ZIP with a remark": (JPEG + archive(b"x" * 9_000), "media-polyglot", "a ZIP archive"),
    "PNG and an empty ZIP": (PNG + b"PK\x05\x06" + bytes(18), "media-polyglot", "a ZIP archive"),
    "JPEG and PDF": (encoded(noise(), "JPEG", comment=b"%PDF-1.4"), "media-polyglot", "a PDF"),
    "JPEG and SVG": (encoded(noise(), "JPEG", comment=b"<svg x=y>"), "media-polyglot", "an SVG"),
    "JPEG and PHP": (JPEG + b"<?php system($_GET['c']); ?>", "media-polyglot", "a script"),
    "GIF and script": (animation(comment=b"</x><ScRiPt>alert()</script>"), "media-polyglot", "a s"),
    "video and page": (WHOLE_VIDEO + video((b"free", b"<html>"))[16:], "media-polyglot", "a web"),
    "video and ZIP": (WHOLE_VIDEO + archive(), "media-polyglot", "a ZIP archive"),
    "video without an index": (video((b"mdat", b"x")), "media-unreadable", "Export it anew"),
    "video without a film": (video((b"moov", b"x")), "media-unreadable", "Export it anew"),
    "cut video": (WHOLE_VIDEO[:-1], "media-unreadable", "cut off"),
    "video with a short box": (WHOLE_VIDEO + struct.pack(">I4s", 4, b"free"),
                               "media-unreadable", "cut off"),
    "video of tiny boxes": (video() + struct.pack(">I4s", 8, b"free") * 10_001,
                            "media-unreadable", "cut off"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_refused_stores_nothing(
    shelf: Library, rows: Rows, database_stand: Stand, name: str
) -> None:
    data, code, words = HOSTILE[name]
    with pytest.raises(MediaRefused) as caught:
        take(shelf, data, field="attachment")
    assert caught.value.code == code
    assert caught.value.field == "attachment"
    assert words in str(caught.value)
    assert caught.value.what.endswith(".")
    assert caught.value.fix.endswith(".")
    assert rows() == NONE
    assert [*database_stand.names()] == []


@pytest.mark.parametrize("stand", ["folder", "s3"], indirect=True)
def test_what_is_refused_reaches_no_storage(library: Library, stand: Stand) -> None:
    for data in (b"hello", JPEG[:300], JPEG + archive()):
        with pytest.raises(MediaRefused):
            take(library, data)
    assert [*stand.names()] == []


def test_what_goes_on_too_long_is_not_read_to_its_end(
    shelf: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "IMAGE_BYTES", 3 * CHUNK_BYTES)
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        yield JPEG
        while True:
            read += 1
            yield bytes(CHUNK_BYTES)

    with pytest.raises(MediaRefused) as caught:
        add(shelf, endless(), who="editor")
    assert caught.value.code == "media-too-large"
    assert read == 3


def test_what_is_no_picture_is_not_read_to_its_end(shelf: Library) -> None:
    def endless() -> Iterator[bytes]:
        yield bytes(16)
        yield bytes(16)
        pytest.fail("read on")

    with pytest.raises(MediaRefused):
        add(shelf, endless(), who="editor")


def test_a_reader_that_breaks_off_stores_nothing(shelf: Library, rows: Rows) -> None:
    def broken() -> Iterator[bytes]:
        yield JPEG[:-10]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        add(shelf, broken(), who="editor")
    assert rows() == NONE


SAYS = """
import json, sys
sys.stdout.buffer.write("{file}".encode("latin-1"))
sys.stderr.write(json.dumps({{"type": "image/png", "width": {size}, "height": 1, "frames": 1}}))
"""


def program(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have another program decode."""
    path = tmp_path / "program.py"
    path.write_text(text)
    monkeypatch.setattr(pictures, "_PROGRAM", path)


def test_the_decoder_finds_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBLISHER_VAULT_KEY", "canary")
    text = (
        "import os, sys\n"
        "print(dict(os.environ), os.getcwd(), sorted(os.listdir('/proc/self/fd')))\n"
        'sys.stderr.write(\'{"type": "image/png", "width": 1, "height": 1, "frames": 1}\')'
    )
    program(tmp_path, text, monkeypatch)
    came, made = (tmp_path / "came").open("w+b"), (tmp_path / "made").open("w+b")
    with came, made, (tmp_path / "another").open("w"), pytest.raises(MediaRefused):
        pictures.encode_anew(came, made, field="file")  # it made no picture
    said = (tmp_path / "made").read_text()
    assert "canary" not in said
    assert said.strip().endswith("/ ['0', '1', '2', '3']")  # 3 lists the folder itself


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "media-unreadable"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "media-too-demanding"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)", "media-too-demanding"),
        ("raise SystemExit(1)", "media-unreadable"),
        ("print('no word')", "media-unreadable"),
        ("import sys; sys.stderr.write('[]')", "media-unreadable"),
        ("import sys; sys.stderr.write('{}')", "media-unreadable"),
        ('import sys; sys.stderr.write(\'{"refused": "side"}\')', "media-too-many-pixels"),
        (SAYS.format(size=1, file="<html>"), "media-unreadable"),
        (SAYS.format(size=1, file="GIF89a"), "media-unreadable"),
        (SAYS.format(size='"x"', file="\\x89PNG\\r\\n\\x1a\\n"), "media-unreadable"),
        (SAYS.format(size=0, file="\\x89PNG\\r\\n\\x1a\\n"), "media-unreadable"),
        (
            "import sys; sys.stderr.write('x' * 9999 + chr(10) + '{\"refused\": \"side\"')",
            "media-unreadable",
        ),
        (
            "import sys; sys.stderr.write('x' * 9999 + chr(10) + '{\"refused\": \"memory\"}')",
            "media-too-demanding",
        ),
        ('import sys; sys.stderr.write(\'{"refused": "memory"}\')', "media-too-demanding"),
        ('import sys; sys.stderr.write(\'{"refused": "no such word"}\')', "media-unreadable"),
    ],
)
def test_a_decoder_that_dies_takes_nothing_with_it(
    shelf: Library,
    rows: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    code: str,
) -> None:
    program(tmp_path, text, monkeypatch)
    with pytest.raises(MediaRefused) as caught:
        take(shelf, JPEG)
    assert caught.value.code == code
    assert rows() == NONE


@pytest.mark.parametrize(
    ("act", "word"),
    [
        ("bytearray(recoder.MEMORY_BYTES)", "MemoryError"),
        ("[open('/dev/null') for _ in range(20)]", "Too many open files"),
        (
            "f = open('out', 'wb', 0); f.write(bytes(recoder.OUTPUT_BYTES)); f.write(b'1')",
            "File too large",
        ),
    ],
)
def test_the_limits_hold(tmp_path: Path, act: str, word: str) -> None:
    import subprocess  # noqa: PLC0415 - of this test alone
    import sys  # noqa: PLC0415

    load = (
        "import importlib.util as u; s = u.spec_from_file_location('recoder', "
        f"{recoder.__file__!r}); recoder = u.module_from_spec(s); s.loader.exec_module(recoder)"
    )
    ended = subprocess.run(
        [sys.executable, "-I", "-c", f"{load}\nrecoder._limit()\n{act}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert word in ended.stderr


def test_memory_that_does_not_suffice_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = Path(recoder.__file__).read_text().replace("= 2 << 30", "= 300 << 20")
    program(tmp_path, text, monkeypatch)
    came, made = (tmp_path / "came").open("w+b"), (tmp_path / "made").open("w+b")
    with came, made:
        came.write(encoded(Image.new("1", (9_000, 5_500)), "PNG"))
        came.seek(0)
        Image.new("RGB", (7_000, 7_000)).save(came, "PNG", compress_level=1)
        with pytest.raises(MediaRefused) as caught:
            pictures.encode_anew(came, made, field="file")
    assert caught.value.code == "media-too-demanding"


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_comes_is_encoded_anew_or_refused(data: st.DataObject) -> None:
    came = bytearray(data.draw(st.sampled_from(TELLING)))
    for _ in range(data.draw(st.integers(0, 4))):
        came[data.draw(st.integers(0, len(came) - 1))] = data.draw(st.integers(0, 255))
    came = came[: data.draw(st.integers(len(came) // 2, len(came)))]
    made = io.BytesIO()
    try:
        with warnings.catch_warnings(action="ignore"):
            told = recoder.recode(io.BytesIO(came), made)
    except Exception:  # noqa: BLE001 - whatever it is, the program says that it is refused
        return
    picture = opened(made.getvalue())
    assert picture.size == (told["width"], told["height"])
    assert CANARY not in made.getvalue()
    assert b"Exif" not in made.getvalue()


def test_the_largest_cap_is_told() -> None:
    assert max(map(kinds.most_bytes, ("image/png", "video/mp4"))) == intake.MOST_BYTES
