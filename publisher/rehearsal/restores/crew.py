"""Sites side by side: most of a plan is waiting for leases and horizons."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue

from publisher.rehearsal.restores.plan import Plan
from publisher.rehearsal.restores.result import Result
from publisher.rehearsal.restores.run import run
from publisher.rehearsal.restores.site import Site


def each(
    plans: Iterable[Plan],
    *,
    lanes: int,
    programs: Path | None = None,
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[Result]:
    """Run plans on so many sites; results come as they are ready.

    ``goes_on`` is asked before each one; what raises there is raised here.
    """
    waiting: SimpleQueue[Plan] = SimpleQueue()
    for plan in plans:
        waiting.put(plan)
    done: SimpleQueue[Result | BaseException | None] = SimpleQueue()
    threads = [
        threading.Thread(target=_work, args=(programs, waiting, done, goes_on))
        for _ in range(min(lanes, waiting.qsize()))
    ]
    for thread in threads:
        thread.start()
    try:
        working = len(threads)
        while working:
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                working -= 1
            else:
                yield result
    finally:
        while not waiting.empty():
            waiting.get_nowait()
        for thread in threads:
            thread.join()


def _work(
    programs: Path | None,
    waiting: SimpleQueue[Plan],
    done: SimpleQueue[Result | BaseException | None],
    goes_on: Callable[[], bool],
) -> None:
    try:
        with Site.open(programs) as site:
            while goes_on():
                done.put(run(site, waiting.get_nowait()))
    except Empty:
        pass
    except BaseException as error:  # noqa: BLE001 - told to who asked
        done.put(error)
    done.put(None)
