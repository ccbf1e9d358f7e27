"""Rehearsing on a real page: any channel of the user's own database where somebody allowed it.

``smoke`` publishes a few marked posts, kills a worker in the middle of one, looks for it, and takes
them all down again; ``clean`` takes down what a killed run left.
"""

from publisher.rehearsal.real.clean import clean
from publisher.rehearsal.real.ground import Ask, Patience, Question, Say
from publisher.rehearsal.real.results import (
    CleanResult,
    How,
    LeftBehind,
    Posted,
    Removed,
    SmokeResult,
)
from publisher.rehearsal.real.smoke import next_run, shown, smoke

__all__ = [
    "Ask",
    "CleanResult",
    "How",
    "LeftBehind",
    "Patience",
    "Posted",
    "Question",
    "Removed",
    "Say",
    "SmokeResult",
    "clean",
    "next_run",
    "shown",
    "smoke",
]
