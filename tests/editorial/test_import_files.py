"""What a file may look like: encodings, separators, quotes, limits; and what stands in it stays."""

from __future__ import annotations

import codecs
import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from publisher.editorial.imports import FileRefused, columns, file, lines, table
from publisher.editorial.imports.row import Row

HEADER = "ref,channel,text,publish_at,zone,link,media,alt"
CELLS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def parsed(path: Path, data: bytes) -> list[Row]:
    path.write_bytes(data)
    source = file.read(path)
    return [*(lines.rows if source.format == "jsonl" else table.rows)(source.text)]


def refused(path: Path, data: bytes) -> FileRefused:
    with pytest.raises(FileRefused) as caught:
        parsed(path, data)
    assert "Nothing was stored." in str(caught.value)
    return caught.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "posts.csv"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_separators_line_ends_and_mark(path: Path, separator: str, end: str, mark: bytes) -> None:
    text = end.join(
        [
            separator.join(["ref", "text", "channel", "publish_at"]),
            separator.join(["a", f'"one{separator} ""two""{end}three"', "Page A", "now"]),
            "",
            separator.join(["b", " tốt ", "Page A", "now"]),
            separator * 3,
        ]
    )
    first, second = parsed(path, mark + text.encode())
    assert first["text"] == f'one{separator} "two"{end}three'
    assert second["text"] == " tốt "
    assert (first.line, second.line) == (2, 5)
    assert second["zone"] == ""


def test_utf16_as_excel_writes_its_unicode_text(path: Path) -> None:
    text = "ref\tchannel\ttext\tpublish_at\r\na\tPage A\tتو‌می 👋\tnow\r\n"
    (row,) = parsed(path, text.encode("utf-16"))
    assert row["text"] == "تو‌می 👋"


def test_the_line_excel_puts_first(path: Path) -> None:
    (row,) = parsed(path, b"sep=;\r\nref;channel;text;publish_at\r\na;Page A;one, two;now\r\n")
    assert row["text"] == "one, two"
    assert row.line == 3


def test_header_in_any_order_and_case(path: Path) -> None:
    (row,) = parsed(path, b" Text ,PUBLISH_AT,Channel,Ref\nhello,now,Page A,a\n")
    assert (row["text"], row.ref) == ("hello", "a")


def test_cells_missing_at_the_end_are_empty(path: Path) -> None:
    (row,) = parsed(path, f"{HEADER}\na,Page A,hello,now\n".encode())
    assert (row["zone"], row.media, row.faults) == ("", (), ())


def test_a_formula_is_text(path: Path) -> None:
    (row,) = parsed(path, f"{HEADER}\na,Page A,=1+1,now\n".encode())
    assert row["text"] == "=1+1"


def test_column_errors_name_all_of_them(path: Path) -> None:
    error = refused(path, b"ref,chanel,text,text,when,\n")
    assert error.code == "columns"
    assert 'There is no column "chanel". Did you mean "channel"?' in error.what
    assert 'There is no column "when".' in error.what
    assert "A column has no name." in error.what
    assert 'Column "text" stands there twice.' in error.what
    assert 'Column "publish_at" is missing.' in error.what
    assert error.fix == f"The first line names the columns: {HEADER}."


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "file-empty", "is empty"),
        (b"\n\n", "file-empty", "is empty"),
        (b"\xff\xfe\x00", "file-encoding", "is not UTF-16, as its byte order mark says: byte 2"),
        (b"PK\x03\x04\x14\x00", "file-encoding", "is a spreadsheet or an archive"),
        ("ref,text".encode("utf-16-le"), "file-encoding", "looks like UTF-16 without"),
        (b'ref,channel,text,publish_at\na,A,"b,now\nc,A,d,now\n', "csv-broken", "Line 2 is no CSV"),
        (b'ref,channel,text,publish_at\na,A,"b" c,now\n', "csv-broken", "in the middle of a cell"),
    ],
)
def test_files_that_are_none(path: Path, data: bytes, code: str, words: str) -> None:
    error = refused(path, data)
    assert error.code == code
    assert words in str(error)


def test_latin_1_names_the_byte_and_its_line(path: Path) -> None:
    for mark in (b"", codecs.BOM_UTF8):
        data = mark + f"{HEADER}\na,Page A,café,now\n".encode("latin-1")
        error = refused(path, data)
        assert error.code == "file-encoding"
        at = data.index(b"\xe9")
        assert f"byte {at} (line 2) is 0xE9. It looks like Latin-1" in error.what
        assert error.fix == "Save it as UTF-8; in Excel that is CSV UTF-8."


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match="There is no file"):
        file.read(tmp_path / "none.csv")
    with pytest.raises(FileRefused, match="cannot be read: Is a directory"):
        file.read(tmp_path)
    with pytest.raises(FileRefused, match="cannot be read"):
        file.read(Path("a\0b"))


def test_a_file_has_at_most_64_mib(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "FILE_BYTES", 100)
    assert refused(path, b"x" * 101).code == "file-too-large"
    assert parsed(path, f"{HEADER}\n".encode() + b"," * 7 + b"\n") == []


def test_json_lines_by_suffix_or_by_look(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf\n{"ref": "a", "text": "b"}\r\n\n{"ref": 7, "channel": 1, "zone": null}\n'
    for name in ("posts.jsonl", "posts.ndjson", "posts.txt", "posts"):
        first, second = parsed(tmp_path / name, data)
        assert (first.ref, first["text"], first.line) == ("a", "b", 2)
        assert (second.ref, second["channel"], second["zone"], second.line) == ("7", "1", "", 4)
    assert refused(tmp_path / "posts.json", b'[{"ref": "a"}]').code == "file-json-array"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ('{"ref": "a"', "json-broken", "Is no JSON: Expecting ',' delimiter at character 12."),
        ('"a"', "json-broken", "Is no object."),
        ('{"ref": "a", "ref": "b"}', "json-broken", 'Names "ref" twice.'),
        ('{"a":' * 100_000, "json-broken", "Is no JSON that can be read."),
        ("1" * 5_000, "json-broken", "Is no JSON that can be read."),
        ('{"txt": "a"}', "columns", 'There is no column "txt".'),
        ('{"text": 1}', "json-type", "Is no text."),
        ('{"ref": true}', "json-type", "Is no text."),
        ('{"media": ["a", 1]}', "json-type", "Is no text."),
        ('{"text": "a\\u0000"}', "character-not-allowed", "NUL at position 2"),
        ('{"text": "ab\\ud800"}', "character-not-allowed", "surrogate pair at position 3"),
        ('{"alt": ["\\udc00"]}', "character-not-allowed", "surrogate pair at position 1"),
    ],
)
def test_lines_that_are_none(tmp_path: Path, line: str, code: str, words: str) -> None:
    (row,) = parsed(tmp_path / "posts.jsonl", line.encode())
    (fault,) = row.faults
    assert fault.code == code
    assert words in fault.message
    assert fault.fix


def test_nul_and_huge_cells_of_a_table_are_faults_of_their_row(path: Path) -> None:
    data = f"{HEADER}\na,Page A,x\0y,now\nb,Page A,{'ố' * 400_000},now\nc,A,ok,now\n"
    nul, huge, good = parsed(path, data.encode())
    assert [f.code for f in nul.faults] == ["character-not-allowed"]
    assert huge.faults[0].message == "Holds 1,200,000 bytes; a cell may hold 1,000,000."
    assert good.faults == ()


def test_too_many_cells(path: Path) -> None:
    (row,) = parsed(path, f"{HEADER}\na,Page A,one, two,now,,,,\n".encode())
    assert not row.is_whole
    assert row.ref == "a"
    assert row.faults[0].message == "Has 9 cells; there are 8 columns."


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a|b", ("a", "b")),
        ("|", ("", "")),
        (r"a\|b|c", ("a|b", "c")),
        (r"C:\media\a.png|b", (r"C:\media\a.png", "b")),
    ],
)
def test_bars(cell: str, parts: tuple[str, ...]) -> None:
    assert columns.split(cell) == parts


def test_json_lists_need_no_escapes(tmp_path: Path) -> None:
    (row,) = parsed(tmp_path / "a.jsonl", b'{"media": ["a|b", "c"], "alt": "one|two"}')
    assert row.media == ("a|b", "c")
    assert row.alt == ("one", "two")


@settings(deadline=None)
@given(
    texts=st.lists(CELLS, min_size=1, max_size=4),
    separator=st.sampled_from(",;\t"),
    quote=st.booleans(),
)
def test_text_through_csv_stays_as_it_is(texts: list[str], separator: str, *, quote: bool) -> None:
    written = io.StringIO(newline="")
    writer = csv.writer(
        written, delimiter=separator, quoting=csv.QUOTE_ALL if quote else csv.QUOTE_MINIMAL
    )
    writer.writerow(HEADER.split(","))
    for number, text in enumerate(texts):
        writer.writerow([number, "Page A", text, "now", "", "", "", ""])
    assert [row["text"] for row in table.rows(written.getvalue())] == texts


@settings(deadline=None)
@given(texts=st.lists(CELLS, min_size=1, max_size=4), ascii_only=st.booleans())
def test_text_through_json_lines_stays_as_it_is(texts: list[str], *, ascii_only: bool) -> None:
    written = "\n".join(json.dumps({"text": t}, ensure_ascii=ascii_only) for t in texts)
    rows = [*lines.rows(written)]
    assert [row["text"] for row in rows] == texts
    assert not any(row.faults for row in rows)
