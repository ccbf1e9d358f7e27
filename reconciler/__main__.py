"""The command ``reconciler``: looks for posts whose outcome is unknown. It never sends."""

from __future__ import annotations

import os
import signal
import sys
from threading import Thread
from types import FrameType
from typing import NoReturn

from publisher import bootstrap
from publisher.engine.errors import PublisherError
from reconciler.judge import Patience
from reconciler.loop import Reconciler


def main() -> NoReturn:
    """Look until SIGTERM or SIGINT. Exit 0; 1 when it had to stop, 2 or 3 when it may not start."""
    try:
        with bootstrap.looking() as parts:
            run = Reconciler(
                connect=parts.connect,
                registry=parts.registry,
                patience=Patience(
                    first=parts.first,
                    longest=parts.longest,
                    limit=parts.limit,
                    horizon=parts.horizon,
                ),
                told=parts.alerts.asked,
                rescue=parts.rescue,
                sweep=parts.alerts.sweep,
                tally=parts.tally,
                poll=parts.poll,
            )
            _stop_on_signals(run)
            if "--parent-pipe" in sys.argv[1:]:
                Thread(target=_stop_with_parent, args=(run,), daemon=True).start()
            code = run.run()
    except bootstrap.REFUSALS as error:
        sys.stderr.write(f"reconciler: {error}\n")
        sys.exit(error.exit_code if isinstance(error, PublisherError) else 2)
    sys.exit(code)


def _stop_on_signals(run: Reconciler) -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        run.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _stop_with_parent(run: Reconciler) -> None:
    """End when whoever started us does: the pipe on standard input closes then."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    run.stop()


if __name__ == "__main__":
    main()
