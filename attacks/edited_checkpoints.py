"""Checkpoints of small fits, whose files are edited, and fits that go on from them."""

import tempfile
from pathlib import Path
from typing import Any

from sklearn.base import clone

from attacks.small_fits import CHECKPOINTED, data_of, fitted
from labelweave.estimators.journal import Journal

KINDS = (
    "margins, coordinates", "margins, rbf", "margins, rbf blocks", "margins, rbf pairs", "logistic, fixed",
    "logistic, learned", "low rank", "low rank, path", "graph, learned", "graph, given", "graph, proximal",
)  # fmt: skip
"""One for every kind of state."""
_ROWS, _FEATURES = 40, 4
_AT = (1, 4)  # checks after which files are taken
_CHECKS = 12  # and the last of the first so many
_PASSES = 50  # so that a fit to the last one is no hang
_MARK = "checkpoint, "


def checkpoint_files() -> dict[str, bytes]:
    found = {}
    for name in KINDS:
        written = _written(name)
        for at in sorted({*_AT, len(written)}):
            if at <= len(written):
                found[f"{_MARK}{name}, {at}"] = written[at - 1]
    return found


def is_checkpoint(name: str) -> bool:
    return name.startswith(_MARK)


def _written(name: str) -> list[bytes]:
    written: list[bytes] = []

    def note(self: Journal, stage: str, state: Any) -> None:
        self.states[self.within + stage] = state
        if len(written) < _CHECKS:
            self.write()
            written.append(self.path.read_bytes())

    usual, Journal.note = Journal.note, note
    try:
        with tempfile.TemporaryDirectory() as folder:
            fit_from(f"{_MARK}{name}, 0", Path(folder) / "fit.lwc")
    finally:
        Journal.note = usual
    return written


def fit_from(name: str, path: Path) -> Any:
    kind = name.removeprefix(_MARK).rpartition(",")[0]
    X, Y = data_of(kind, _ROWS, _FEATURES)
    model = clone(CHECKPOINTED[kind]).set_params(checkpoint=path)
    if kind.startswith("graph"):
        model.set_params(max_iter=_PASSES)
    return fitted(model, X, Y)
