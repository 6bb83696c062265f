"""``labelweave convert``: the same rows in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from labelweave.cli.flags import DataFlags, file_options
from labelweave.datasets import (
    LabeledData,
    read_any,
    write_hierarchical_arff,
    write_mulan,
    write_svmlight,
    write_xmc,
)

__all__ = ["convert"]

_WRITTEN = ("mulan", "hierarchical_arff", "xmc", "svmlight")
_BY_SUFFIX = {".arff": "mulan", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight"}
_NAMELESS = ("xmc", "svmlight")


@click.command()
@click.argument("data")
@click.argument("out")
@click.option("--to", type=click.Choice(_WRITTEN), help="Format of OUT [by its name: .arff is mulan].")
@click.option("--xml-out", metavar="FILE", help="Mulan: where the label names go [name.xml beside OUT].")
@click.option("--lossy", is_flag=True, help="Leave out what the format cannot hold, such as names.")
@file_options
def convert(data: str, out: str, to: str | None, xml_out: str | None, lossy: bool, **options: Any) -> None:
    """Write a data file in another format.

    Converts between mulan, hierarchical_arff, xmc and svmlight.  What the new
    format cannot hold is left out only with --lossy; labels that were not
    observed are never turned into negative ones.

    \b
    Examples:
      labelweave convert train.txt train.svm
      labelweave convert bibtex.arff bibtex.txt --to xmc --lossy
      labelweave convert train.svm train.arff --xml-out labels.xml
    """
    rows = _read(data, DataFlags.of(options))
    format = to or _format_by_name(out)
    if xml_out is not None and format != "mulan":
        raise click.UsageError(f"--xml-out goes with mulan only, and {out} is written as {format}.")
    _refuse_same_file(data, out)
    _refuse_loss(rows, format, lossy)
    _write(rows, out, format, xml_out)


def _read(data: str, source: DataFlags) -> LabeledData:
    format = source.format_of(data)
    if format == "table":
        raise ValueError(f"{data} is a table, which is converted to features only by 'labelweave fit'.")
    return read_any(data, format, **source.matrix_keywords())


def _format_by_name(out: str) -> str:
    suffix = Path(out.removesuffix(".gz")).suffix.lower()
    if suffix not in _BY_SUFFIX:
        raise click.UsageError(
            f"The name {out} does not say its format; give one of {', '.join(_WRITTEN)} as --to."
        )
    return _BY_SUFFIX[suffix]


def _refuse_same_file(data: str, out: str) -> None:
    if Path(data).resolve() == Path(out).resolve():
        raise click.UsageError(f"{out} is the file to read; give another name.")


def _refuse_loss(rows: LabeledData, format: str, lossy: bool) -> None:
    if rows.Y.has_missing and format in _NAMELESS:
        raise ValueError(
            f"The data have unobserved labels, which {format} cannot hold: they would become negative. "
            "mulan can hold them."
        )
    lost = _lost(rows, format)
    if lost and not lossy:
        raise ValueError(f"{format} cannot hold {' and '.join(lost)}; add --lossy to leave that out.")


def _lost(rows: LabeledData, format: str) -> list[str]:
    if format not in _NAMELESS:
        return []
    held = {
        "feature names": rows.feature_names is not None,
        "label names": rows.label_names is not None,
        "the taxonomy": bool(rows.parents),
        "the number of labels, as no row has the last ones": format == "svmlight"
        and _last_label_is_unused(rows),
    }
    return [what for what, there in held.items() if there]


def _last_label_is_unused(rows: LabeledData) -> bool:
    return rows.Y.n_labels > 0 and rows.Y.positive_counts()[-1] == 0


def _write(rows: LabeledData, out: str, format: str, xml_out: str | None) -> None:
    if format == "mulan":
        write_mulan(rows, out, xml_out or Path(out.removesuffix(".gz")).with_suffix(".xml"))
    elif format == "hierarchical_arff":
        write_hierarchical_arff(rows, out)
    elif format == "xmc":
        write_xmc(rows, out)
    else:
        write_svmlight(rows, out)
