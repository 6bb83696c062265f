"""Storage of the states of label blocks during a fit, to limit lost work.

A folder on this machine, or any place that fsspec reaches, with one file per block, replaced atomically.
Without a place from the user it is a temporary folder, from which blocks of dead workers resume.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelweave import model_files
from labelweave.dask.tasks import FittedBlock, RowStates
from labelweave.foundation.arguments import ParameterMessage
from labelweave.model_files import ModelContent, ModelFileError
from labelweave.problems.traveling_margins import RowState, SharedState

_KIND = "TravelingCheckpoint"


@dataclass(frozen=True)
class Snapshot:
    """The state of a block after some rounds.

    check_below: see :class:`labelweave.solvers.dual_coordinate_ascent.SweepState`.
    end: the fitted block; then there is no state.
    """

    rounds: int
    check_below: float
    shared: SharedState | None
    states: tuple[RowStates, ...]
    end: FittedBlock | None = None

    def to_plain(self) -> dict[str, Any]:
        """Convert it to dictionaries, numbers and arrays."""
        return {
            "rounds": self.rounds,
            "check_below": None if np.isinf(self.check_below) else self.check_below,
            "shared": None if self.shared is None else self.shared.to_plain(),
            "states": [[state.to_plain() for state in place] for place in self.states],
            "end": None if self.end is None else vars(self.end),
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Snapshot:
        below, shared, end = plain["check_below"], plain["shared"], plain["end"]
        return cls(
            rounds=plain["rounds"],
            check_below=np.inf if below is None else below,
            shared=None if shared is None else SharedState.from_plain(shared),
            states=tuple(tuple(map(RowState.from_plain, place)) for place in plain["states"]),
            end=None if end is None else FittedBlock(**end),
        )


class Store:
    """The snapshots of one fit, in a place.

    place: a path or a URL that fsspec supports; None for a temporary folder.
    marks: properties of the fit, by name; snapshots of another fit are refused.
    Raises ModelFileError, a ValueError, if the place has such snapshots, or is a file.
    """

    def __init__(self, place: str | os.PathLike[str] | None, marks: Mapping[str, str]) -> None:
        from fsspec.core import url_to_fs

        self.place, self.marks, self._known = place, dict(marks), set[int]()
        self._temporary = tempfile.TemporaryDirectory(prefix="labelweave-")
        self._written = Path(self._temporary.name)
        self._files, self._root = url_to_fs(os.fspath(place or self._written / "blocks"))
        if self._files.isdir(self._root):
            names = [Path(name).stem for name in self._files.ls(self._root, detail=False)]
            self._known = {
                int(name[6:]) for name in names if name.startswith("block-") and name[6:].isdigit()
            }
        elif self._files.exists(self._root):
            self._temporary.cleanup()
            raise ModelFileError(
                ParameterMessage(
                    f"`checkpoint={str(place)!r}` is a file, but a fit on a cluster needs a folder; "
                    "pass a folder, which is created if it does not exist."
                )
            )

    def _paths(self, block: int) -> tuple[Path, str]:
        """Return the path where the file of a block is written and read here, and its final place."""
        name = f"block-{block}.lwc"
        return self._written / name, f"{self._root}/{name}"

    def put(self, block: int, snapshot: Snapshot) -> None:
        """Store the snapshot of a block, replacing the last one."""
        arrays: dict[str, Any] = {}
        plain = {"marks": self.marks, "snapshot": snapshot.to_plain()}
        path, kept = self._paths(block)
        model_files.write_model_file(path, ModelContent(_KIND, model_files.encode(plain, arrays), arrays))
        self._files.makedirs(self._root, exist_ok=True)
        self._files.put_file(str(path), f"{kept}.part")
        self._files.mv(f"{kept}.part", kept)
        path.unlink()
        self._known.add(block)

    def get(self, block: int) -> Snapshot | None:
        """Return the last snapshot of a block; None without one."""
        if block not in self._known:
            return None
        path, kept = self._paths(block)
        try:
            self._files.get_file(kept, str(path))
            return self._read(path)
        except (ModelFileError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            said = " ".join(str(error).split()).rstrip(".")
            raise ModelFileError(
                ParameterMessage(
                    f"`checkpoint={str(self.place)!r}`: the fit cannot resume from block {block} there "
                    f"({said}); delete that folder, or pass another one."
                )
            ) from error
        finally:
            path.unlink(missing_ok=True)

    def _read(self, path: Path) -> Snapshot:
        content = model_files.read_model_file(path, mmap=False)
        if content.kind != _KIND:
            raise ValueError(f"it is a file of another kind, {content.kind}")
        plain = model_files.decode(content.state, content.arrays)
        others = [what for what, mark in self.marks.items() if plain["marks"].get(what) != mark]
        if others:
            raise ValueError(f"it is of another fit: {', '.join(others)} differ")
        return Snapshot.from_plain(plain["snapshot"])

    def close(self, *, is_done: bool) -> None:
        """Remove the snapshots of a completed fit; those of an incomplete one stay in the user's place."""
        if is_done:
            for block in self._known:
                self._files.rm_file(self._paths(block)[1])
            if self._known and not self._files.ls(self._root, detail=False):
                self._files.rmdir(self._root)
        self._temporary.cleanup()
