"""The frame of all commands: options from their defaults, records of results, tables, plots."""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data

Run = dict[str, Any]
RESULTS = Path(__file__).with_name("results")
IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


class Flag(NamedTuple):
    """A flag of the command line: its default, its help, and further arguments of argparse."""

    default: Any
    help: str
    more: dict[str, Any]


def flag(default: Any = None, help: str = "", **more: Any) -> Flag:
    """Make a flag whose default does not describe everything."""
    return Flag(default, help, more)


OUT = flag(help="a JSON file for the results", type=Path)


def several(choices: Iterable[Any], help: str = "", **more: Any) -> Flag:
    """Make a flag that takes some of the choices, by default all."""
    return Flag(list(choices), help, {"choices": list(choices), **more})


def without_name(default: Any, help: str = "", **more: Any) -> Flag:
    """Make the argument that takes all words that belong to no flag."""
    return Flag(default, help, {"nargs": "*", "has_name": False, **more})


def read_options(
    about: str | None,
    words: Sequence[str] | None = None,
    /,
    *,
    records: Path | bool | None = False,
    **flags: Any,
) -> argparse.Namespace:
    """Read the command line.

    The default of a flag determines its type; a list, tuple or dictionary means several values, and False a
    switch.

    about: the help, the module's docstring.
    words: the command line; None for that of the process.
    records: the default file of :class:`RecordedRuns`, or None; their flags are added unless it is False.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in flags.items():
        default, says, more = value if isinstance(value, Flag) else flag(value)
        default = list(default) if isinstance(default, (tuple, dict)) else default
        known = {"default": default, "help": says or None} | _kind(default, more) | more
        has_name = known.pop("has_name", True)
        parser.add_argument(f"--{name.replace('_', '-')}" if has_name else name, **known)
    if records is not False:
        parser.add_argument("--out", type=Path, default=records, help="the results file")
        either = parser.add_mutually_exclusive_group()
        either.add_argument("--go-on", action="store_true", help="measure only what the results file lacks")
        either.add_argument("--show-recorded", action="store_true", help="measure nothing; show the file")
    return parser.parse_args(words)


def command(
    *, records: Path | bool | None = False, **flags: Any
) -> Callable[[Callable[[Any], int | None]], Callable[[], int | None]]:
    """Make a function the command of the module that it ends: it runs where the module is run.

    It is called with the result of :func:`read_options`; if data or programs are missing, it prints a
    sentence and exits with status 2.
    """

    def made(main: Any) -> Callable[[], int | None]:
        @needs_data
        def run() -> int | None:
            return main(read_options(main.__globals__["__doc__"], records=records, **flags))

        if main.__module__ == "__main__":
            raise SystemExit(run())
        return run

    return made


def _kind(default: Any, more: dict[str, Any]) -> dict[str, Any]:
    """Return the kind of a flag by its default."""
    if default is False:
        return {"action": "store_true"}
    found: dict[str, Any] = {}
    if isinstance(default, list):
        found["nargs"], default = "+", default[0] if default else None
    if default is not None:
        found["type"] = Path if isinstance(default, Path) else type(default)
    return {name: value for name, value in found.items() if name not in more}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace a JSON file once the new one is complete; create its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".part")
    scratch.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(scratch, path)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file, or return nothing if there is none."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path: Path | None, content: dict[str, Any]) -> None:
    """Write the results with the machine, if a file was requested."""
    if path is not None:
        write_json(path, describe_machine() | content)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]] = ()) -> list[str]:
    """Write the lines of a table of Markdown."""
    head, *lines = (f"| {' | '.join(line)} |" for line in (columns, *rows))
    return [head, "|---" * len(columns) + "|", *lines]


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Fit a line through the logarithms: the slope is 1 where time is proportional to size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def standard_error(values: Any, axis: int = 0) -> Any:
    """Return the standard error of the mean; NaN of one value."""
    from scipy.stats import sem

    return sem(values, axis) if len(values) > 1 else np.nan


def mean_and_error(values: Any, digits: int = 4, sign: str = "", between: str = " ± ") -> str:
    """Write a mean with its standard error; nothing of no values."""
    if not len(values):
        return ""
    return f"{np.mean(values):{sign}.{digits}f}{between}{standard_error(values):.{digits}f}"


def in_turns(
    calls: Mapping[str, Callable[[], Any]], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Time calls in turn, since other programs may use the machine; return the seconds of every round.

    clock: by default the CPU time of this process.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            seconds[name].append(timed(call, clock=clock)[1])
    return seconds


def timed(
    work: Callable[..., Any], *given: Any, clock: Callable[[], float] = time.process_time, **more: Any
) -> tuple[Any, float]:
    """Return the result of a call, and its seconds, by default CPU seconds of this process."""
    begin = clock()
    answer = work(*given, **more)
    return answer, clock() - begin


def cost_of(work: Callable[..., Any], *given: Any, **more: Any) -> tuple[Any, float, float]:
    """Return the result of a call, its seconds by the clock, and its CPU seconds."""
    begin = time.process_time()
    answer, seconds = timed(work, *given, clock=time.perf_counter, **more)
    return answer, seconds, time.process_time() - begin


@contextmanager
def quiet(kind: type[Warning] | None = None) -> Iterator[None]:
    """Ignore warnings of fits that end before they converge, or all of another kind."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kind or ConvergenceWarning)
        yield


def groups(runs: Iterable[Run], *names: str) -> dict[tuple[Any, ...], list[Run]]:
    """Sort runs by some of their values, in the order in which these come first."""
    found: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        found.setdefault(tuple(run[name] for name in names), []).append(run)
    return found


def begin_picture(*counts: int, **shape: Any) -> tuple[Any, Any]:
    """Start a plot that needs no window: the figure, and its axis or axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(*counts, layout="constrained", **shape)


class Growth(NamedTuple):
    """Seconds by the sizes of something, of several curves, and what stays the same."""

    name: str
    sizes: Sequence[float]
    curves: Mapping[str, Sequence[float]]
    caption: str = ""

    def slopes(self, curve: str) -> tuple[float, float]:
        """Return the slope of all sizes, and of the larger ones."""
        upper, seconds = len(self.sizes) // 2, self.curves[curve]
        return slope(self.sizes, seconds), slope(self.sizes[upper:], seconds[upper:])

    def draw(self, axis: Any) -> None:
        """Draw the curves, and a line of slope 1 that ends with the first; print their slopes."""
        for (legend, seconds), style in zip(self.curves.items(), ("o-", "s-"), strict=False):
            whole, upper = self.slopes(legend)
            label = f"{legend}: slope {whole:.2f} (upper half {upper:.2f})"
            axis.loglog(self.sizes, seconds, style, color=_BLUE if style == "o-" else "#b5532a", label=label)
            print(f"{label} by {self.name}")
        last = next(iter(self.curves.values()))[-1] / self.sizes[-1]
        axis.loglog(self.sizes, last * np.array(self.sizes), "--", color="0.55", label="linear", zorder=0)
        axis.set(xlabel=self.name)
        axis.set_title(self.caption, fontsize=9)
        axis.legend(frameon=False, fontsize=8)
        axis.grid(True, which="major", alpha=0.3)


def draw_growths(panels: Sequence[Growth], path: Path, y_label: str, **shape: Any) -> None:
    figure, axes = begin_picture(1, len(panels), figsize=(3.7 * len(panels) + 0.2, 3.6), **shape)
    for axis, panel in zip(axes, panels, strict=True):
        panel.draw(axis)
    axes[0].set_ylabel(y_label)
    write_picture(figure, path)


_BLUE = "#1f5a92"


def write_picture(figure: Any, path: Path, dpi: int = 150) -> None:
    """Write a figure, create its folder if necessary, and close it."""
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi)
    plt.close(figure)


class RecordedRuns:
    """What a call measures, and the earlier runs in its results file.

    A run is a dictionary of its case, its results, and under "measured" when, where, at which commit and in
    how many CPU seconds.  Measured runs replace recorded ones of the same case; the file is written after
    every run.

    arguments: the result of ``read_options`` called with ``records``.
    **facts: further content of the file, such as the paper's figures.
    runs: those that this call shows: the measured ones, and with ``--go-on`` or ``--show-recorded`` those of
    the file.
    known: all runs in the file.
    measures: whether anything is to be measured.
    """

    def __init__(self, arguments: argparse.Namespace, **facts: Any) -> None:
        self._out, self._facts = arguments.out, facts
        self._file: dict[str, Any] = read_json(self._out) or {"runs": []}
        self.known: list[Run] = list(self._file["runs"])
        self.measures = not arguments.show_recorded
        self.runs: list[Run] = list(self.known) if arguments.go_on or arguments.show_recorded else []
        self._recorded = list(self.runs)
        self._begin = time.process_time()

    def wants(self, case: Run) -> bool:
        """Return whether a case is to be measured.

        case: the values that its run would have.
        """
        return self.measures and self.find(case) is None

    def missing(self, **choices: Iterable[Any]) -> Iterator[Run]:
        """Yield the cases of all combinations of choices that are to be measured."""
        cases = (dict(zip(choices, values, strict=True)) for values in product(*choices.values()))
        return filter(self.wants, cases)

    def find(self, case: Run) -> Run | None:
        """Find the run of a case among those that this call shows.

        case: the values that the run has.
        Returns: the first one, or None.
        """
        return next((run for run in self.runs if case.items() <= run.items()), None)

    def add(self, case: Run, found: Run) -> Run:
        """Add a measurement, and write the file.

        found: the results.
        """
        machine = describe_machine()
        measured = {key: machine[key] for key in ("date", "commit", "processor", "cores")}
        seconds, self._begin = time.process_time() - self._begin, time.process_time()
        run = case | found | {"measured": measured | {"seconds": round(seconds, 1)}}
        self.runs.append(run)
        self.known = [*(one for one in self.known if not case.items() <= one.items()), run]
        write_json(self._out, {**machine, **self._facts, "runs": self.known})
        return run

    def show(self, text: str) -> None:
        """Print lines, each with the note of recorded runs if there are any."""
        share = "" if len(self._recorded) == len(self.runs) else "partly "
        ending = mark(self._file, self._recorded, share) if self._recorded else ""
        for line in text.splitlines():
            print(line + ending, flush=True)


def mark(file: dict[str, Any], runs: list[Run], share: str = "") -> str:
    """Return the end of a line that shows recorded runs.

    file: the content of the results file.
    runs: some of its runs.
    share: "partly " if the line shows others too.
    Returns: their origin, and that a commit is not recorded if one is not.
    """
    commits = [run.get("measured", {}).get("commit") for run in runs]
    rest = "" if all(commits) else "/commit not recorded" if any(commits) else ", commit not recorded"
    return f"  [{share}recorded {origin(file, runs)}{rest}]"


def origin(file: dict[str, Any], runs: list[Run]) -> str:
    """Return when, where and at which commit runs were measured.

    file: the content of the results file.
    runs: some of its runs.
    Returns: dates, processors, cores and commits, several separated by slashes.
    """
    usual = {key: file[key] for key in ("processor", "cores") if key in file}
    usual |= {"date": "before 2026-11-24", "commit": ""}
    parts = [usual | run.get("measured", {}) for run in runs]
    machines = [
        f"{part['processor']}, {part['cores']} cores" if "processor" in part else "machine not recorded"
        for part in parts
    ]
    dates, commits = ([str(part[key]) for part in parts] for key in ("date", "commit"))
    return ", ".join("/".join(sorted(set(said) - {""})) for said in (dates, machines, commits) if any(said))
