"""``labelweave fit`` and ``cross-validate``: their flags, which become one request, and their help pages.

Help shows the most common flags, or all of them, in sections.  The fits are in
:mod:`labelweave.app.cli.fitting`, which is imported once all flags are parsed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from labelweave.app.cli.decision_flags import decision_options
from labelweave.app.cli.fit_request import RELATIONS, FitRequest
from labelweave.app.cli.flags import (
    answers_option,
    column_options,
    data_argument,
    file_options,
    label_column_options,
    no_nan,
    option,
    reading,
    signing_option,
    switch,
    with_options,
)
from labelweave.app.cli.messages import require_writable
from labelweave.app.cli.model_flags import MODELS, ModelFlag, model_flag_options, model_table

_MANY = 4  # models with a flag, from which the help attributes it to most models
_SECTIONS = {
    "How labels are related": (
        "graph", "taxonomy", "data_taxonomy", "covariance", "covariance_from", "signatures", "shrink",
        "label_descriptions", "one_class", "class_paths", "path_separator", "relations", "outside",
    ),
    "From scores to decisions": ("enforce", "calibrate", "tune_threshold", "conformal"),
    "Comparing": ("compare", "compare_folds"),
    "DATA that is a table": (
        "labels", "label_separator", "label_names", "empty_labels", "label_column", "id", "groups",
        "no_header", "text", "categorical", "numeric", "vectors", "drop", "min_df", "ngrams",
        "missing_numeric", "encoder",
    ),
    "DATA in other formats": ("format", "xml", "n_labels", "labels_at", "n_features", "zero_based"),
}  # fmt: skip
_SECTION_OF = {name: title for title, names in _SECTIONS.items() for name in names}
_ANY, _SEVERAL, _USUAL = "Most models", "Several models", "Options"
_FEW = ("out", "dry_run", "model", "labels", "label_separator", "label_column", "text", "categorical",
        "numeric", "vectors", "id", "groups", "xml", "time_budget", "jobs", "seed", "folds", "as_json",
        "quiet", "help_all")  # fmt: skip
_ALL = "labelweave.help_all"  # key in click's context, true to show all flags
_NARROW = 25  # columns for flags if there are few
_GRAPHS = ("learn", "chow-liu", "full", "none")


class FitCommand(click.Command):
    """A command with the flags of all models; after ``--model NAME`` its help has only those of this one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params.append(_help_all())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shows_all, chosen = ctx.meta.get(_ALL, False), ctx.params.get("model") if _is_given(ctx) else None
        order = (_USUAL, _ANY, _SEVERAL, *(f"--model {model}" for model in MODELS), *_SECTIONS)
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in order}
        for parameter in self.get_params(ctx):
            name, record = str(parameter.name), parameter.get_help_record(ctx)
            owners = parameter.owners if isinstance(parameter, ModelFlag) else {}
            is_own, is_others = chosen in owners, bool(owners) and chosen not in (None, *owners)
            if (
                record is None
                or is_others
                or not (shows_all or is_own or name in _FEW or "--help" in parameter.opts)
            ):
                continue
            if isinstance(parameter, ModelFlag) and is_own:
                record = record[0], parameter.help_of(chosen)
            title = _section(name, list(owners)) if shows_all else f"--model {chosen}" if is_own else _USUAL
            sections[title].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=30 if shows_all else _NARROW)


def _help_all() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
        if is_asked:
            ctx.meta[_ALL] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return click.Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show,
        help="Show all flags; after --model NAME those of this model.",
    )  # fmt: skip


def _is_given(ctx: click.Context) -> bool:
    source = ctx.get_parameter_source("model")
    return source is not None and source.name == "COMMANDLINE"


def _section(name: str, owners: list[str]) -> str:
    if name in _SECTION_OF:
        return _SECTION_OF[name]
    if len(owners) == 1:
        return f"--model {owners[0]}"
    return _USUAL if not owners else _ANY if len(owners) >= _MANY else _SEVERAL


def _graph(text: str) -> str:
    """Raise for a value that is neither a word nor a file, before the data are read."""
    if text in _GRAPHS or Path(text).is_file():
        return text
    raise click.BadParameter(
        f"{text!r} is neither one of {', '.join(_GRAPHS)} nor a file; use a file of lines label,label."
    )


_structure_options = with_options(
    option("--graph learn|chow-liu|full|none|FILE", "label-graph: edges between labels: learned pairs, the "
           "tree of largest mutual information, all pairs, none, or those of a file of lines "
           "label,label[,...] [learn].", callback=reading(_graph)),
    option("--taxonomy FILE", "Hierarchy that labels obey, with any model, and that relates them if the "
           "model supports it: lines parent,child (.csv, .tsv), lines a/b/c, nested JSON (.json), an "
           "ontology (.obo), or a thesaurus in SKOS (.ttl, .nt, .rdf)."),
    option("--relations NAME,...", "Relations of an ontology that lead from a term to its parents, such "
           "as is_a,part_of [is_a].", callback=reading(lambda text: text.replace(",", " ").split())),
    option("--outside-taxonomy outside", "What to do with labels that the taxonomy lacks: raise an error, "
           "drop them, or keep them as roots [raise].", type=click.Choice(["raise", "drop", "root"])),
    switch("--data-taxonomy", "Like --taxonomy, with the hierarchy in DATA."),
    option("--covariance FILE", "Prior covariance of the labels: .npy, or .csv with label names."),
    option("--covariance-from FILE", "Prior covariance of the labels in this data file."),
    option("--signatures FILE", "Prior covariance of the labels over classes: lines class,label,... (.csv, "
           ".tsv); a column 'prior' weighs them."),
    option("--label-descriptions FILE", "Names and descriptions of labels: lines name,description "
           "(.csv, .tsv), or only names. Their texts are a prior, whose strength is learned, and labels "
           "that DATA lacks are predicted too: LabelTextClassifier, which needs labelweave[text]."),
    option("--shrink AMOUNT", "Shrink the covariance toward independent labels, from 0 (none) to 1.",
           type=click.FloatRange(0, 1), callback=no_nan),
)  # fmt: skip
_model_options = with_options(
    option("--model NAME", "auto: an ensemble; max-margin: label sets; kernel-logistic: probabilities; "
           "low-rank: a few factors shared by many labels; label-graph: a graph of labels; label-tree: ten "
           "thousand labels or more; binary-relevance: one model per label [auto; max-margin with flags "
           "that auto lacks].", type=click.Choice(list(MODELS)), is_eager=True),
    *model_flag_options(),
    _structure_options,
    decision_options,
    option("--one-class/--many-labels", "Every row has one class, or none where it is unknown; or it has "
           "any number of labels [many; one with --class-paths, and for kernel-logistic with "
           "--data-taxonomy].", default=None),
    switch("--class-paths", "kernel-logistic: classes are paths such as a/b/c in a taxonomy; shorter ones "
           "are partially observed."),
    option("--path-separator TEXT", "Separator of the names in a path of --class-paths [detected: /, >, "
           "::, | and the like]."),
    option("--label-names A,B,...", "Table: the labels of cells of --labels such as [0, 1, 0]."),
    label_column_options,
    option("--groups COLUMN", "Table: groups of rows; each is in one fold."),
    answers_option,
    column_options,
    option("--encoder", "Table: add vectors of texts to their words: static ones, means of fixed vectors "
           "of tokens (labelweave[text]), weighted by how much they improve out-of-fold predictions.",
           type=click.Choice(["static"])),
    file_options,
)  # fmt: skip
_dask_option = option(
    "--dask local:N|ADDRESS", "Fit on a Dask cluster: N processes on this machine, or the scheduler at an "
    "address such as tcp://host:8786: max-margin if no model is named, low-rank, kernel-logistic, "
    "label-graph and label-tree, for data that do not fit one machine, and auto for data that fit each "
    "worker. DATA may be several files, a folder or a pattern; Parquet files are read in parts.",
)  # fmt: skip


def _budget(context: click.Context, _: click.Parameter, megabytes: float | None) -> None:
    from labelweave.foundation.config import config_context

    if megabytes is not None:
        context.with_resource(config_context(memory_budget=megabytes))


_memory_option = option(
    "--memory-budget MEGABYTES", "Memory for kernel matrices, their factors, caches and panels, and with "
    "--dask for the rows of a worker [2000; kernel-logistic and low-rank 8000].",
    type=click.FloatRange(0, min_open=True), callback=_budget, expose_value=False,
)  # fmt: skip
_device_option = option(
    "--device NAME", "Device of PyTorch for kernel matrices and the steps of solvers, such as cuda: "
    f"{', '.join(model_table().objects['device'])}.",
)  # fmt: skip


def _on_device(name: str) -> AbstractContextManager[None]:
    from labelweave.foundation.arrays.homes import made_at, torch_home

    try:
        return made_at(torch_home(name))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


_quiet_option = switch("--quiet -q", "Write nothing but warnings and errors.")


@click.command(cls=FitCommand)
@data_argument
@click.argument("more", nargs=-1, metavar="[MORE]...")
@option("--out -o FILE", "Path of the model file.")
@switch("--dry-run", "Fit nothing; print how DATA is read.")
@_model_options
@option("--compare MODEL,...", "Before the fit, compare the model with others at their defaults, "
        "on the same folds of DATA: metrics, seconds, size, and intervals "
        "of the differences.")  # fmt: skip
@option("--compare-folds", "Folds of --compare, stratified by labels.", type=click.IntRange(2), usual=5)
@_dask_option
@_device_option
@_memory_option
@signing_option
@_quiet_option
@click.pass_context
def fit(context: click.Context, /, data: str, out: str | None, **options: Any) -> None:
    """Fit a model to a data file and save it.

    Labels that are missing in DATA are unobserved.  Ctrl-C saves the best model so
    far, or none with flags that fit several times.

    \b
    Examples:
      labelweave fit bibtex-train.arff --xml bibtex.xml --out bibtex.lw
      labelweave fit packages.csv --text description --categorical section \\
          --labels tags --label-separator , --out tags.lw
      labelweave fit movies.csv --text plot --label-column 'genre_*' --out movies.lw
    """
    if out is None and not options["dry_run"]:
        raise click.UsageError("Missing option '--out' / '-o'; --dry-run writes nothing.")
    request = FitRequest.of(data, out or "", options)
    read = (getattr(request.flags, name) for name in ("answers", "xml", "graph", *RELATIONS))
    require_writable(out, data, *request.flags.more, *request.flags.vectors, *read)
    if request.flags.dask is not None:
        from labelweave.app.cli.cluster import run_on_cluster

        context.exit(run_on_cluster(request))
    from labelweave.app.cli.fitting import run_fit, show_data

    if request.flags.device is not None:
        context.with_resource(_on_device(request.flags.device))
    context.exit(show_data(request) if options["dry_run"] else run_fit(request))


@click.command("cross-validate", cls=FitCommand)
@data_argument
@click.argument("more", nargs=-1, metavar="[MORE]...")
@option("--folds", "Number of folds, stratified by labels.",
        type=click.IntRange(2), usual=5)  # fmt: skip
@switch("--json as_json", "Print JSON, including the values of every fold.")
@_model_options
@_dask_option
@_memory_option
@_quiet_option
def cross_validate(data: str, folds: int, as_json: bool, **options: Any) -> None:
    """Cross-validate a model, without saving one.

    Fits the model to all folds but one and evaluates it on that fold, in turn.
    Prints the mean of every metric and its 95 % interval, which accounts for shared
    training rows.  Features of a table (words and their frequencies, categories,
    means) are computed once, from all rows, without the labels; only the weight of
    --encoder depends on labels, and is also chosen once.

    \b
    Examples:
      labelweave cross-validate bibtex.arff --xml bibtex.xml --folds 10
      labelweave cross-validate packages.csv --text description --labels tags \\
          --label-separator , --model low-rank --rank 0.4 --json
      labelweave cross-validate movies --dask local:4 --label-column 'genre_*'
    """
    without = {"compare": None, "compare_folds": folds, "key": None}
    request = FitRequest.of(data, "", {**options, **without})
    from labelweave.app.cli.fitting import run_cross_validation

    run_cross_validation(request, as_json)
