"""From runs of kernel machines to a Markdown table: seconds to each relative duality gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.frame import markdown
from benchmarks.kernel_runs import KernelRun


@dataclass
class KernelCurve:
    """A program's runs, and which of them reached each gap; ``None`` if none did, absent if not tried."""

    title: str
    version: str
    is_own: bool
    runs: list[KernelRun] = field(default_factory=list)
    reaching: dict[str, KernelRun | None] = field(default_factory=dict)


def kernel_table(curves: Sequence[KernelCurve], gaps: Sequence[float]) -> str:
    """Write a row for each program and a column for each gap.

    A cell holds the seconds for all labels, the ratio to labelweave's, and in brackets the
    tolerance (of peers), the gap it gave and the worst gap of a label.

    curves: one for each program.
    gaps: relative duality gaps.
    """
    own = next((curve for curve in curves if curve.is_own), None)
    columns = ["program", *(f"gap {gap:g}" for gap in gaps)]
    rows = [
        [f"{curve.title} {curve.version}", *(_cell(curve, own, str(gap)) for gap in gaps)] for curve in curves
    ]
    return "\n".join(markdown(columns, rows))


def _cell(curve: KernelCurve, own: KernelCurve | None, gap: str) -> str:
    if gap not in curve.reaching:
        return "not run"
    run = curve.reaching[gap]
    if run is None:
        return "not reached"
    if curve.is_own:
        return f"{run.seconds:.1f} s (gap {run.gap:.1e})"
    base = None if own is None else own.reaching.get(gap)
    ratio = "" if base is None else f", {run.seconds / base.seconds:.1f}x"
    return f"{run.seconds:.1f} s{ratio} (eps {run.tolerance:g}, gap {run.gap:.1e}, worst {run.worst_gap:.1e})"
