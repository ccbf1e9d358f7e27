"""What every place that may hold the witness must do."""

from __future__ import annotations

import multiprocessing
import traceback

import pytest
from structlog.testing import capture_logs

from publisher.engine.witness import WitnessConflict, WitnessUnreachable, WitnessUnreadable
from tests.witness.places import RECORD, Stand, raise_often, ticked


def test_nothing_is_there_before_the_first_write(stand: Stand) -> None:
    assert stand.place.open().read() is None


def test_what_is_written_is_read_by_others(stand: Stand) -> None:
    stamp = stand.place.open().write(RECORD, over=None)
    held = stand.place.open().read()
    assert held is not None
    assert (held.record, held.stamp) == (RECORD, stamp)


def test_writes_follow_one_another(stand: Stand) -> None:
    witness = stand.place.open()
    stamp = witness.write(ticked(60), over=None)
    for tick in (120, 180):
        stamp = witness.write(ticked(tick), over=stamp)
    held = witness.read()
    assert held is not None
    assert held.record.tick == 180


def test_whoever_read_before_another_wrote_changes_nothing(stand: Stand) -> None:
    early, late = stand.place.open(), stand.place.open()
    stamp = early.write(ticked(60), over=None)
    late.write(ticked(120), over=stamp)
    with pytest.raises(WitnessConflict):
        early.write(ticked(61), over=stamp)
    held = early.read()
    assert held is not None
    assert held.record.tick == 120


def test_only_one_is_first(stand: Stand) -> None:
    stand.place.open().write(ticked(60), over=None)
    with pytest.raises(WitnessConflict):
        stand.place.open().write(ticked(1), over=None)


def test_one_that_is_gone_is_not_made_again_unseen(stand: Stand) -> None:
    with pytest.raises(WitnessConflict):
        stand.place.open().write(RECORD, over="a stamp of one that is not there")
    assert stand.place.open().read() is None


def test_no_write_of_two_processes_is_lost(stand: Stand) -> None:
    spawn = multiprocessing.get_context("spawn")
    start, overtaken = spawn.Barrier(2), spawn.Queue()
    racing = [
        spawn.Process(target=raise_often, args=(stand.place, 25, start, overtaken))
        for _ in range(2)
    ]
    for one in racing:
        one.start()
    met = sum(overtaken.get(timeout=90) for _ in racing)
    for one in racing:
        one.join()
    held = stand.place.open().read()
    assert held is not None
    assert held.record.tick == 50
    assert met > 0, "they never met"


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\xff\xfe\x00",
        b"null",
        b"[" * 4_000,
        b'{"deployment": "cut',
        RECORD.to_json().replace(b'"tick": 60', b'"tick": "60"'),
        RECORD.to_json().replace(b'"tick": 60', b'"tick": -1'),
        RECORD.to_json()[:-1] + b" " * 70_000,
    ],
    ids=["empty", "binary", "null", "deep", "cut", "kind", "negative", "long"],
)
def test_what_is_no_record_is_said_to_be_none(stand: Stand, garbage: bytes) -> None:
    stand.plant(garbage)
    with pytest.raises(WitnessUnreadable):
        stand.place.open().read()


def test_a_damaged_one_is_replaced_and_kept_aside(stand: Stand) -> None:
    stand.plant(b"damaged")
    witness = stand.place.open()
    stamp = witness.replace(RECORD)
    held = witness.read()
    assert held is not None
    assert (held.record, held.stamp) == (RECORD, stamp)
    assert stand.kept() == [b"damaged"]


def test_where_nothing_is_replacing_makes_it(stand: Stand) -> None:
    stand.place.open().replace(RECORD)
    held = stand.place.open().read()
    assert held is not None
    assert held.record == RECORD
    assert stand.kept() == []


def test_a_writer_from_before_a_replacement_changes_nothing(stand: Stand) -> None:
    stamp = stand.place.open().write(ticked(60), over=None)
    stand.place.open().replace(ticked(500))
    with pytest.raises(WitnessConflict):
        stand.place.open().write(ticked(61), over=stamp)


def test_what_cannot_be_reached_is_not_taken_for_nothing(stand: Stand) -> None:
    witness = stand.place.open()
    stamp = witness.write(RECORD, over=None)
    stand.cut()
    with pytest.raises(WitnessUnreachable):
        witness.read()
    with pytest.raises(WitnessUnreachable):
        witness.write(ticked(120), over=stamp)
    with pytest.raises(WitnessUnreachable):
        witness.replace(ticked(120))


def test_no_secret_is_told(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with capture_logs() as logs:
        witness = stand.place.open()
        witness.write(RECORD, over=None)
        stand.cut()
        with pytest.raises(WitnessUnreachable) as caught:
            witness.read()
    told = "".join(traceback.format_exception(caught.value))
    said = f"{told}{witness!r}{witness.name}{vars(witness)}{logs}{caplog.text}"
    assert "canary" not in said
    assert witness.name in str(caught.value)
