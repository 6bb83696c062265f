"""``labelweave audit``: entries of a data file's labels that are probably wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from labelweave.app.cli.answer_files import Columns, Record, chosen_format, write_answers
from labelweave.app.cli.fitting import read_training_rows
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import Waiting, console, note, one_line, require_writable, say, short
from labelweave.app.cli.relation_files import read_covariance
from labelweave.app.noise import LabelErrors, Reason, find_label_errors
from labelweave.datasets import read_taxonomy
from labelweave.decisions.automatic import AutoLabelClassifier
from labelweave.labels import LabelCovariance, LabelMatrix

_SHOWN = 20
_WIDEST = 24
_COLUMNS = ["id", "label", "recorded", "probability", "alone", "reasons"]


def run(
    data: str, top: int | None, out: str | None, output_format: str | None, quiet: bool, **options: Any
) -> None:
    """Rank entries that are probably wrong, and print or write them."""
    if options["forgotten"] and options["false"] is not None:
        raise click.UsageError(
            "--forgotten says that no label is recorded wrongly, so --false is 0; leave it out."
        )
    if (options["missed"] or 0) + (options["false"] or 0) >= 1:
        raise click.UsageError("--missed and --false add up to 1 or more; give shares whose sum is below 1.")
    if options["taxonomy"] is not None and options["covariance"] is not None:
        raise click.UsageError("--taxonomy and --covariance both relate the labels; give one of them.")
    is_printed = out in (None, "-") and output_format is None
    out = None if out == "-" else out
    format = chosen_format(out, output_format)
    require_writable(out, data, options["taxonomy"], options["covariance"], options["xml"])
    rows, _, words, _ = read_training_rows(data, DataFlags.of(options), has_one=False)
    if words is not None and not quiet:
        words.show()
    model = AutoLabelClassifier(
        time_budget=options["time_budget"], n_jobs=options["jobs"], random_state=options["seed"],
        verbose=int(not quiet),
    )  # fmt: skip
    related = _structure(rows.Y, options["taxonomy"], options["covariance"])
    rates = (options["missed"], 0.0 if options["forgotten"] else options["false"])
    found = find_label_errors(
        rows.X, rows.Y, scores=model, flip_rates=rates, related=related, random_state=options["seed"],
        on_progress=None if quiet else Waiting(),
    )  # fmt: skip
    found = found if top is None else found.ranked(top)
    ids = range(len(rows)) if rows.row_ids is None else rows.row_ids.tolist()
    if is_printed or out is not None:
        _show(found if top is not None else found.ranked(min(len(found), _SHOWN)), ids)
    if not is_printed:
        write_answers(_records(found, ids, format), Columns(_COLUMNS, []), out, format)
    if out is not None and not quiet:
        note(f"{len(found)} entries are in {out}.")


def _structure(Y: LabelMatrix, taxonomy: str | None, covariance: str | None) -> Any:
    """Read how labels are related; True where nothing is known."""
    names = Y.words
    if taxonomy is not None:
        return LabelCovariance.from_taxonomy(read_taxonomy(taxonomy), names, normalized=True)
    return True if covariance is None else read_covariance(covariance, names)


def _records(found: LabelErrors, ids: Sequence[Any], format: str) -> Iterator[Record]:
    for one in found.records():
        reasons = {name: short(effect) for name, effect in one["reasons"].items()}
        text = "; ".join(f"{name} {effect:+.2g}" for name, effect in reasons.items())
        yield {
            "id": ids[one["row"]],
            "label": one["label"],
            "recorded": one["recorded"],
            "probability": short(one["probability"]),
            "alone": short(one["alone"]),
            "reasons": reasons if format == "jsonl" else text,
        }


def _words(reason: Reason) -> str:
    return f"  {reason.effect:+.2g} by {'' if reason.probability > 0.5 else 'no '}{reason.name}"


def _show(found: LabelErrors, ids: Sequence[Any]) -> None:
    """Print the entries as a table, and what was estimated."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("row", overflow="fold", max_width=_WIDEST)
    table.add_column("label, and why it is wrong", overflow="fold")
    table.add_column("recorded")
    table.add_column("wrong", justify="right")
    for place, one in enumerate(found.records()):
        said = [one["label"], *(_words(reason) for reason in found.reasons(place, 2))]
        cells = one_line(str(ids[one["row"]])), "\n".join(map(one_line, said))
        recorded = "yes" if one["recorded"] else "no"
        table.add_row(*cells, recorded, f"{one['probability']:.2f}")
    console().print(table)
    rates = found.flip_rates
    n, n_labels = found.probabilities.shape
    lines = (
        f"{n} rows, {n_labels} labels; {found.expected:.0f} entries are expected to be wrong: "
        f"{rates.missed.mean():.2%} of the labels that are there are not recorded, {rates.false.mean():.2%} "
        "of those that are not there are."
    )
    say(click.wrap_text(lines, 79))
