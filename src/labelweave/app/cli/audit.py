"""``labelweave audit``: entries of a data file's labels that are probably wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from labelweave.app.cli import messages
from labelweave.app.cli.answer_files import Columns, Record, chosen_format, write_answers
from labelweave.app.cli.fitting import read_training_rows
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import Waiting
from labelweave.app.cli.relation_files import read_covariance
from labelweave.app.noise import LabelErrors, Reason, find_label_errors
from labelweave.datasets import read_taxonomy
from labelweave.decisions.automatic import AutoLabelClassifier
from labelweave.labels import LabelCovariance, LabelMatrix

_EXCLUSIONS = (
    (["forgotten"], ["false"], "{} excludes wrongly recorded labels, so {} is 0; leave it out."),
    (["taxonomy"], ["covariance"], "{} and {} both relate the labels; use one of them."),
)
_SHOWN = 20
_WIDEST = 24
_COLUMNS = ["id", "label", "recorded", "probability", "alone", "reasons"]


def run(flags: DataFlags) -> None:
    messages.refuse(messages.excluded(vars(flags), _EXCLUSIONS))
    if (flags.missed or 0) + (flags.false or 0) >= 1:
        raise click.UsageError("--missed and --false add up to 1 or more; use shares whose sum is below 1.")
    data, top, out = flags.data, flags.top, None if flags.out == "-" else flags.out
    is_printed = out is None and flags.output_format is None
    format = chosen_format(out, flags.output_format)
    messages.require_writable(out, data, flags.taxonomy, flags.covariance, flags.xml, *flags.vectors)
    rows, _, words, _ = read_training_rows(data, flags, has_one=False)
    if words is not None:
        words.show()
    model = AutoLabelClassifier(
        time_budget=flags.time_budget, n_jobs=flags.jobs, random_state=flags.seed,
        verbose=int(not flags.quiet),
    )  # fmt: skip
    rates = (flags.missed, 0.0 if flags.forgotten else flags.false)
    found = find_label_errors(
        rows.X, rows.Y, scores=model, flip_rates=rates, related=_structure(rows.Y, flags),
        random_state=flags.seed, on_progress=Waiting(),
    )  # fmt: skip
    found = found if top is None else found.ranked(top)
    ids = range(len(rows)) if rows.row_ids is None else rows.row_ids.tolist()
    if is_printed or out is not None:
        _show(found if top is not None else found.ranked(min(len(found), _SHOWN)), ids)
    if not is_printed:
        write_answers(_records(found, ids, format), Columns(_COLUMNS, []), out, format)
    if out is not None:
        messages.hint(f"{len(found)} entries are in {out}.")


def _structure(Y: LabelMatrix, flags: DataFlags) -> Any:
    """Read the relations between labels; True if there are none."""
    if flags.taxonomy is not None:
        return LabelCovariance.from_taxonomy(read_taxonomy(flags.taxonomy), Y.words, normalized=True)
    return True if flags.covariance is None else read_covariance(flags.covariance, Y.words)


def _records(found: LabelErrors, ids: Sequence[Any], format: str) -> Iterator[Record]:
    for one in found.records():
        reasons = {name: messages.short(effect) for name, effect in one["reasons"].items()}
        text = "; ".join(f"{name} {effect:+.2g}" for name, effect in reasons.items())
        yield {
            "id": ids[one["row"]],
            "label": one["label"],
            "recorded": one["recorded"],
            "probability": messages.short(one["probability"]),
            "alone": messages.short(one["alone"]),
            "reasons": reasons if format == "jsonl" else text,
        }


def _words(reason: Reason) -> str:
    return f"  {reason.effect:+.2g} by {'' if reason.probability > 0.5 else 'no '}{reason.name}"


def _show(found: LabelErrors, ids: Sequence[Any]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("row", overflow="fold", max_width=_WIDEST)
    table.add_column("label, and why it may be wrong", overflow="fold")
    table.add_column("recorded")
    table.add_column("wrong", justify="right")
    for place, one in enumerate(found.records()):
        said = [one["label"], *(_words(reason) for reason in found.reasons(place, 2))]
        cells = messages.one_line(str(ids[one["row"]])), "\n".join(map(messages.one_line, said))
        recorded = "yes" if one["recorded"] else "no"
        table.add_row(*cells, recorded, f"{one['probability']:.2f}")
    messages.console().print(table)
    rates = found.flip_rates
    n, n_labels = found.probabilities.shape
    lines = (
        f"{n} rows, {n_labels} labels; {found.expected:.0f} entries are expected to be wrong: "
        f"{rates.missed.mean():.2%} of true labels are not recorded, {rates.false.mean():.2%} of false "
        "ones are."
    )
    messages.say(click.wrap_text(lines, 79))
