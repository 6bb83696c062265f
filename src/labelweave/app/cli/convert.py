"""``labelweave convert``: the same rows in another format."""

from __future__ import annotations

from pathlib import Path

import click

from labelweave import datasets
from labelweave.app.cli.flags import WRITTEN, DataFlags
from labelweave.app.cli.messages import refuse_input_as_output
from labelweave.datasets import LabeledData, read_any
from labelweave.datasets.any_file import NUMBERED
from labelweave.datasets.csr_parts import label_numbers

_BY_SUFFIX = {".arff": "mulan", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight"}


def run(flags: DataFlags) -> None:
    data, out, xml_out = flags.data, flags.out, flags.xml_out
    read_as = flags.format_of(data)
    if read_as == "table":
        raise ValueError(f"{data} is a table; only 'labelweave fit' converts tables to features.")
    every = {"all_labels": True} if read_as == "xmc" else {}
    rows = read_any(data, read_as, **every, **flags.matrix_keywords())
    format = flags.to or _BY_SUFFIX.get(Path(out.removesuffix(".gz")).suffix.lower())
    if format is None:
        formats = ", ".join(WRITTEN)
        raise click.UsageError(f"The name {out} does not determine the format; set --to to one of {formats}.")
    if xml_out is not None and format != "mulan":
        raise click.UsageError(f"--xml-out is only for mulan, but {out} is written as {format}.")
    refuse_input_as_output(out, data, flags.xml)
    names_out = xml_out or str(Path(out.removesuffix(".gz")).with_suffix(".xml"))
    if format == "mulan":
        refuse_input_as_output(names_out, data, flags.xml)
        if Path(names_out).resolve() == Path(out).resolve():
            raise click.UsageError(f"--xml-out {names_out} is the file of the rows; use another name.")
    if format in NUMBERED:
        _refuse_loss(rows, format, flags.lossy)
    if format == "mulan":
        datasets.write_mulan(rows, out, names_out)
    else:
        getattr(datasets, f"write_{format}")(rows, out)


def _refuse_loss(rows: LabeledData, format: str, lossy: bool) -> None:
    if rows.Y.has_missing:
        raise ValueError(
            f"The data have unobserved labels, which {format} cannot hold: they would become negative. "
            "Use --to mulan, which can hold them."
        )
    unused = rows.Y.n_labels > 0 and rows.Y.positive_counts()[-1] == 0
    held = {
        "feature names": rows.feature_names is not None,
        "label names": rows.label_names is not None and label_numbers(rows.label_names) is None,
        "the taxonomy": bool(rows.parents),
        "the weights of rows": rows.weights is not None,
        "the number of labels, as no row has the last ones": format == "svmlight" and unused,
    }
    lost = [what for what, is_there in held.items() if is_there]
    if lost and not lossy:
        raise ValueError(f"{format} cannot hold {' and '.join(lost)}; add --lossy to drop these.")
