"""All commands but ``fit``, with their flags and help pages.

Each command is implemented in a module that is imported once all flags are parsed, to keep help fast.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from typing import Any

import click

from labelweave.app.cli.decision_flags import decision_options
from labelweave.app.cli.flags import (
    COUNT,
    SEED,
    WRITTEN,
    DataFlags,
    answers_option,
    column_options,
    data_argument,
    file_options,
    label_column_options,
    no_nan,
    option,
    signed_option,
    switch,
    unknown_label_option,
    with_options,
)

_SHARE = click.FloatRange(0, 1, max_open=True)
_TABLES = click.Choice(["jsonl", "csv", "tsv", "parquet"])


def _command(module: str, function: str = "run") -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command with flags and a help page from a function of a module."""

    def run(**flags: Any) -> None:
        getattr(import_module(module), function)(DataFlags(**flags))

    return lambda described: click.command()(update_wrapper(run, described))


_model_and_data = with_options(
    click.argument("model"), data_argument,
    option("--text COLUMN...", "Table: the column of texts, for a pipeline fitted to texts."),
    option("--vectors FILE...", "Table: the vectors of its rows (.npy, .npz, .safetensors), if the model "
           "takes vectors that are not a column."),
)  # fmt: skip
_labeled = with_options(label_column_options, file_options, signed_option)
_quiet_option = switch("--quiet -q", "Show no progress.")


@_command("labelweave.app.cli.predict")
@_model_and_data
@option("--top", "Print this many labels per row, the best first.", type=COUNT)
@option("--threshold", "Print labels whose probability is above this, or whose score if the model has "
        "no probabilities [without --top: the label set that the model predicts].", type=float)  # fmt: skip
@switch("--probabilities", "Print probabilities: of all labels, or with --top or --threshold instead of "
        "scores.")  # fmt: skip
@option("--reject-below P", "One class per row: abstain where the most probable class is less probable.",
        type=click.FloatRange(0, 1))  # fmt: skip
@switch("--certificates", "label-graph: print for each row whether its labels are proven optimal, and the "
        "largest possible gain in score.")  # fmt: skip
@option("--terms", "Labels of a hierarchy: print sets with all ancestors, or the most specific labels "
        "only.", type=click.Choice(["closed", "specific"]))  # fmt: skip
@option("--output-format", "JSON lines, or a table [by the name of --out, else jsonl].", type=_TABLES)
@option("--out -o FILE", "Write to a file instead of stdout (-): .jsonl, .csv, .tsv or .parquet.")
@option("--id COLUMN", "Table: the column that names the rows.")
@file_options
@signed_option
def predict(**flags: Any) -> None:
    """Predict the labels of the rows of a data file.

    Prints the predicted label set of each row, the best label first, or its class
    if the model has one class per row; rows without a name are numbered from zero.
    Scores are relative to the model's thresholds, if any; the guarantee of a model
    fitted with --conformal is printed on stderr.  A table needs the feature columns
    of the training table, and no labels.

    \b
    Examples:
      labelweave predict tags.lw new.jsonl --top 5
      labelweave predict tags.lw new.csv --threshold 0.3 --output-format tsv
      labelweave predict bibtex.lw bibtex-test.arff --out labels.parquet
    """


@_command("labelweave.app.cli.evaluate")
@_model_and_data
@switch("--json as_json", "Print JSON, including the metrics of every label.")
@switch("--csv as_csv", "Print the metrics of every label as CSV.")
@option("--dask local:N|ADDRESS", "Let the workers of a Dask cluster read the files of DATA, a folder or a "
        "pattern, one worker per file; without AUC per label, log loss and "
        "calibration.")  # fmt: skip
@unknown_label_option
@_labeled
def evaluate(**flags: Any) -> None:
    """Compare a model's predictions with the labels of a data file.

    Labels are matched by name, or by number where a file has no names.  Labels
    and classes that are missing in DATA are not counted.  A table has its labels
    where the training table had them, unless flags override this.

    \b
    Examples:
      labelweave evaluate tags.lw test.jsonl
      labelweave evaluate bibtex.lw bibtex-test.arff --json
      labelweave evaluate tags.lw test.jsonl --csv > labels.csv
      labelweave evaluate movies.lw movies --dask local:4
    """


@_command("labelweave.app.cli.evaluate", "decide")
@_model_and_data
@option("--out -o FILE", "Path of the model file.", required=True)
@decision_options
@unknown_label_option
@switch("--quiet -q", "Write nothing but warnings and errors.")
@_labeled
def decide(**flags: Any) -> None:
    """Tune or calibrate a fitted model on held-out rows.

    Optimizes its decisions for a metric, bounds their errors, or calibrates
    probabilities.  DATA has labeled rows that were not in the training data, and all
    of them are used; the model file does not change.  To hold out rows of the
    training data instead, pass the same flags to fit.

    \b
    Examples:
      labelweave decide tags.lw held-out.csv --tune-threshold macro_f1 --out tuned.lw
      labelweave decide bibtex.lw held-out.arff --calibrate isotonic --out odds.lw
      labelweave decide odds.lw other.arff --conformal false_discoveries,level=0.2 \\
          --out sets.lw
    """


@_command("labelweave.app.cli.evaluate", "report")
@_model_and_data
@option("--out -o FILE", "Path of the page (.html).", required=True)
@option("--title TEXT", "The heading of the page.")
@option("--weakest", "Maximum number of weak labels to analyze.", type=click.IntRange(0), usual=20)
@option("--examples", "Maximum number of rows to show in full.", type=click.IntRange(0), usual=6)
@unknown_label_option
@_quiet_option
@_labeled
def report(**flags: Any) -> None:
    """Write an HTML page about a model and its quality on a data file.

    The page shows the model, its certificate, the metrics, weak labels and why they
    are weak, correlations of labels, and rows with the words or features that raised
    or lowered the scores of their labels (linear models).  The file is
    self-contained, without network access and scripts.

    \b
    Examples:
      labelweave report tags.lw test.csv --out report.html
      labelweave report bibtex.lw bibtex-test.arff --weakest 50 --out report.html
    """


@_command("labelweave.app.cli.asking", "queries")
@_model_and_data
@option("--count -n", "Number of entries to ask about.", type=COUNT, usual=50)
@option("--out -o FILE", "Path of the table, instead of stdout (-).")
@option("--strategy", "By the expected error reduction over other entries, by the model's uncertainty, "
        "or at random.", type=click.Choice(["expected_error", "uncertainty", "random"]),
        usual="expected_error")  # fmt: skip
@option("--seed", "Seed of random choices.", type=SEED, usual=0)
@answers_option
@unknown_label_option
@_labeled
def queries(**flags: Any) -> None:
    """Choose which labels of which rows to annotate next.

    Writes a table with one line per entry, the most useful first, with the row's
    text and the model's probability.  Fill in the column 'answer' with yes, no or
    unknown, and pass the file to labelweave fit with --answers.  Entries that are
    known in DATA or answered in --answers are not asked about.

    \b
    Examples:
      labelweave queries tags.lw packages.csv --count 100 --out ask.csv
      labelweave queries scene.lw scene-train.arff --answers ask.csv --out more.csv
    """


@_command("labelweave.app.cli.asking", "label")
@data_argument
@option("--answers FILE", "File to append answers to, with earlier answers [DATA's name with "
        ".answers.csv].")  # fmt: skip
@option("--new-label NAME...", "Ask about this label, which is not in DATA; repeatable.")
@option("--port", "The port [any free port].", type=click.IntRange(0, 65535), default=0)
@label_column_options
@column_options
@file_options
def label(**flags: Any) -> None:
    """Serve a labeling page, to this machine only.

    Asks about the labels of rows whose answers are expected to improve a model
    most, with the row's text and the model's probability; keys y, n, d (don't know)
    and u (undo).  Every answer is on disk before the next question, and the model is
    refitted in the background.  Blank cells of DATA are unknown.

    \b
    Examples:
      labelweave label packages.csv --text description --label-column 'tag_*'
      labelweave label mails.csv --text body --new-label urgent --new-label spam
      labelweave fit mails.csv --text body --answers mails.answers.csv ...
    """


@_command("labelweave.app.cli.audit")
@data_argument
@option("--top", "Rank this many entries [the expected number of wrong ones; 20 are shown].",
        type=click.IntRange(0))  # fmt: skip
@switch("--forgotten", "Labels may only be missing: recorded ones are right.")
@option("--missed SHARE", "Share of true labels that are not recorded [estimated].",
        type=_SHARE, callback=no_nan)  # fmt: skip
@option("--false SHARE", "Share of false labels that are recorded [estimated].",
        type=_SHARE, callback=no_nan)  # fmt: skip
@option("--taxonomy FILE", "A hierarchy over the labels, as for fit: related labels are compared first.")
@option("--covariance FILE", "A matrix over the labels, as for fit: related labels are compared first.")
@option("--time-budget SECONDS", "Time for the model that scores the rows [300].",
        type=click.FloatRange(0, min_open=True), callback=no_nan)  # fmt: skip
@option("--out -o FILE", "Write the entries to a file too (.jsonl, .csv, .tsv or .parquet), or lines to "
        "stdout (-) with --output-format.")  # fmt: skip
@option("--output-format", "JSON lines, or a table [by the name of --out].", type=_TABLES)
@option("--jobs", "Threads to grow trees.", type=int)
@option("--seed", "Seed of folds and trees.", type=SEED, usual=0)
@_quiet_option
@label_column_options
@column_options
@file_options
def audit(**flags: Any) -> None:
    """Find labels of a data file that are probably wrong.

    Rows are scored by out-of-fold models (AutoLabelClassifier), and compared with
    the other labels of the row.  Shows which entries are probably wrong, the most
    likely first, and which related labels contradict what is recorded: how much each
    adds to the expected value of the label.

    \b
    Examples:
      labelweave audit bibtex.arff --xml bibtex.xml
      labelweave audit packages.csv --text description --labels tags \\
          --label-separator , --id package --forgotten --out wrong.csv
    """


@_command("labelweave.app.cli.inspect")
@click.argument("model")
@option("--label NAME", "Show the features with the largest weights for and against this label; for a "
        "low-rank model also the most similar labels, for a label-graph model its neighbors.")  # fmt: skip
@option("--features count", "With --label: how many features of each sign, and labels.", type=COUNT, usual=10)
@switch("--covariance", "Show the prior covariance of labels.")
@switch("--graph", "Show the edges of the label graph, and the order in which they were learned.")
@switch("--thresholds", "Show the score or probability above which each label is predicted.")
@option("--out -o FILE", "With --covariance or --graph: also plot it (.png, .pdf, .svg).")
@signed_option
@switch("--json as_json", "Print JSON.")
def inspect(**flags: Any) -> None:
    """Show the contents of a model file.

    \b
    Examples:
      labelweave inspect tags.lw
      labelweave inspect tags.lw --label role::program --features 20
      labelweave inspect scene.lw --graph --out scene.png
    """


@_command("labelweave.app.cli.convert")
@data_argument
@click.argument("out")
@option("--to", "Format of OUT [by its name: .arff is mulan].", type=click.Choice(WRITTEN))
@option("--xml-out FILE", "Mulan: path of the label names [name.xml next to OUT].")
@switch("--lossy", "Drop what the format cannot hold, such as names.")
@file_options
def convert(**flags: Any) -> None:
    """Convert a data file to another format.

    Converts between mulan, hierarchical_arff, xmc and svmlight.  Only --lossy drops
    what the new format cannot hold; unobserved labels never become negative.

    \b
    Examples:
      labelweave convert train.txt train.svm
      labelweave convert bibtex.arff bibtex.txt --to xmc --lossy
      labelweave convert train.svm train.arff --xml-out labels.xml
    """


@_command("labelweave.app.cli.demo")
@option("--jobs", "Threads.", type=int, usual=2)
@option("--rows", "Use only this many rows.", type=COUNT, hidden=True)
@_quiet_option
def demo(**flags: Any) -> None:
    """Tag Debian packages with the bundled data set.

    Fits several models in one call, a max-margin model with a covariance over tags
    of one facet, and one of independent tags; compares them on held-out packages;
    proposes tags for ten untagged packages.
    """
