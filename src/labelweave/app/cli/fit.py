"""``labelweave fit``: its flags, which become one request.

What fits stands in :mod:`labelweave.app.cli.fitting`, which is imported when all flags are understood.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from labelweave.app.cli.decision_flags import decision_options
from labelweave.app.cli.fit_help import FitCommand
from labelweave.app.cli.fit_request import FitRequest
from labelweave.app.cli.flags import (
    answers_option,
    column_options,
    data_argument,
    file_options,
    label_column_options,
    no_nan,
    reading,
    signing_option,
    with_options,
)
from labelweave.app.cli.messages import require_writable
from labelweave.app.cli.model_flags import model_flag_options
from labelweave.app.cli.model_table import MODELS

_GRAPHS = ("learn", "chow-liu", "full", "none")


def _graph(text: str) -> str:
    """Refuse what is neither a word nor a file before the data are read."""
    if text in _GRAPHS or Path(text).is_file():
        return text
    raise click.BadParameter(
        f"{text!r} is neither one of {', '.join(_GRAPHS)} nor a file; give a file of lines label,label."
    )


_structure_options = with_options(
    click.option("--graph", metavar="learn|chow-liu|full|none|FILE", callback=reading(_graph),
                 help="label-graph: which labels are scored together: learned pairs, the tree of largest "
                 "mutual information, all pairs, none, or those of a file of lines label,label[,...] "
                 "[learn]."),
    click.option("--taxonomy", metavar="FILE",
                 help="Labels share what they learn along this hierarchy: lines parent,child (.csv, .tsv), "
                 "lines a/b/c, nested JSON (.json), an ontology (.obo), or a thesaurus in SKOS "
                 "(.ttl, .nt, .rdf)."),
    click.option("--data-taxonomy", is_flag=True, help="The same with the hierarchy that DATA itself holds."),
    click.option("--covariance", metavar="FILE",
                 help="Prior covariance of the labels: .npy, or .csv with label names."),
    click.option("--covariance-from", metavar="FILE",
                 help="Labels vary together as they do in this data file."),
    click.option("--signatures", metavar="FILE",
                 help="Labels vary together as over these classes: lines class,label,... (.csv, .tsv); a "
                 "column 'prior' weighs them."),
    click.option("--label-descriptions", metavar="FILE",
                 help="What labels are called and described by: lines name,description (.csv, .tsv), or "
                 "names alone. Their texts are a prior, whose strength is learned, and labels that DATA "
                 "lacks are predicted too: LabelTextClassifier, which needs labelweave[text]."),
    click.option("--shrink", metavar="AMOUNT", type=click.FloatRange(0, 1), callback=no_nan,
                 help="Pull the covariance towards independent labels: from 0, not at all, to 1."),
)  # fmt: skip
_class_options = with_options(
    click.option("--one-class/--many-labels", default=None,
                 help="Every row has one class, or none where it is not known; or it has any number of "
                 "labels [many; one with --class-paths, and for kernel-logistic with --data-taxonomy]."),
    click.option("--class-paths", is_flag=True,
                 help="kernel-logistic: classes are paths such as a/b/c in a taxonomy; shorter ones are "
                 "known in part."),
)  # fmt: skip
_model_options = with_options(
    click.option(
        "--model",
        type=click.Choice(list(MODELS)),
        metavar="NAME",
        help="auto combines several models, max-margin gives label sets, kernel-logistic probabilities, "
        "low-rank learns few factors of many labels, label-graph which labels go together, label-tree serves "
        "ten thousand labels, binary-relevance is a model of each label alone [auto; max-margin with flags "
        "that auto has not].",
        is_eager=True,
    ),
    *model_flag_options(),
    _structure_options,
    decision_options,
    _class_options,
    label_column_options,
    answers_option,
    column_options,
    file_options,
)
_compare_options = with_options(
    click.option("--compare", metavar="MODEL,...",
                 help="Before the fit, compare the model with these others, as they come without flags, on "
                 "the same folds of DATA: all metrics, seconds, size, intervals of differences."),
    click.option("--compare-folds", type=click.IntRange(2), default=5, show_default=True,
                 help="Folds of --compare, stratified by labels."),
)  # fmt: skip
_dask_option = click.option(
    "--dask",
    metavar="local:N|ADDRESS",
    help="Fit on a Dask cluster, of N processes on this machine or that of a scheduler such as "
    "tcp://host:8786: max-margin if no model is named, low-rank, kernel-logistic, label-graph and "
    "label-tree, for data that do not fit one machine, and auto for what fits each worker. DATA may be "
    "several files, a folder or a pattern; Parquet files are read in parts.",
)


@click.command(cls=FitCommand)
@data_argument
@click.argument("more", nargs=-1, metavar="[MORE]...")
@click.option("--out", "-o", metavar="FILE", required=True, help="Where the model goes.")
@_model_options
@_compare_options
@_dask_option
@signing_option
@click.option("--quiet", "-q", is_flag=True, help="Write nothing but warnings and errors.")
@click.pass_context
def fit(context: click.Context, /, data: str, out: str, **options: Any) -> None:
    """Fit a model to a data file and save it.

    Labels that are missing in DATA count as not observed.  Ctrl-C saves the best
    model so far, and none with flags that fit several times.

    \b
    Examples:
      labelweave fit bibtex-train.arff --xml bibtex.xml --out bibtex.lw
      labelweave fit packages.csv --text description --categorical section \\
          --labels tags --label-separator , --out tags.lw
      labelweave fit movies.csv --text plot --label-column 'genre_*' --out movies.lw
    """
    request = FitRequest.of(data, out, options)
    source, relations = request.source, vars(request.relations).values()
    require_writable(out, data, *request.more, source.answers, source.xml, request.graph, *relations)
    if request.dask is not None:
        from labelweave.app.cli.cluster_fit import run_on_cluster

        context.exit(run_on_cluster(request))
    from labelweave.app.cli.fitting import run_fit

    context.exit(run_fit(request))


@click.command("cross-validate", cls=FitCommand)
@data_argument
@click.argument("more", nargs=-1, metavar="[MORE]...")
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True,
              help="How many parts the rows are divided into, stratified by labels.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON, the values of every fold too.")
@_model_options
@_dask_option
@click.option("--quiet", "-q", is_flag=True, help="Write nothing but warnings and errors.")
def cross_validate(data: str, folds: int, as_json: bool, **options: Any) -> None:
    """Measure a model by cross-validation, and save none.

    The model is fitted to all parts of the rows but one and measured on that one,
    in turn.  Prints the mean of every metric and its 95 % interval, which allows
    for parts that share training rows.  Features of a table (words and their
    frequencies, categories, means) are made once, of all rows, without a look at
    labels.

    \b
    Examples:
      labelweave cross-validate bibtex.arff --xml bibtex.xml --folds 10
      labelweave cross-validate packages.csv --text description --labels tags \\
          --label-separator , --model low-rank --rank 0.4 --json
      labelweave cross-validate movies --dask local:4 --label-column 'genre_*'
    """
    without = {"compare": None, "compare_folds": folds, "key": None}
    request = FitRequest.of(data, "", {**options, **without})
    from labelweave.app.cli.cross_validate import run

    run(request, as_json)
