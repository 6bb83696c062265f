"""The commands but ``fit``, with their flags and help pages.

What they do stands in a module each, imported when all flags are understood: help pages import nothing heavy.
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
    """Make a command of flags and a help page; a function of a module does what it says."""

    def run(**flags: Any) -> None:
        getattr(import_module(module), function)(DataFlags(**flags))

    return lambda described: click.command()(update_wrapper(run, described))


_model_and_data = with_options(
    click.argument("model"), data_argument,
    option("--text COLUMN...", "Table: the column of texts, for a pipeline that was fitted to texts."),
    option("--vectors FILE...", "Table: the vectors of its rows (.npy, .npz, .safetensors), where the model "
           "takes some that are no column."),
)  # fmt: skip
_labelled = with_options(label_column_options, file_options, signed_option)
_quiet_option = switch("--quiet -q", "Show no progress.")


@_command("labelweave.app.cli.predict")
@_model_and_data
@option("--top", "Print so many labels a row, the best first.", type=COUNT)
@option("--threshold", "Print labels whose probability is above this, or whose score where the model gives "
        "no probabilities [without --top: the label set that the model predicts].", type=float)  # fmt: skip
@switch("--probabilities", "Print probabilities: of everything, or with --top or --threshold in place of "
        "scores.")  # fmt: skip
@option("--reject-below P", "One class a row: print none where the most probable one is less probable.",
        type=click.FloatRange(0, 1))  # fmt: skip
@switch("--certificates", "label-graph: print of each row whether its labels are proven best, and by how "
        "much others could score more.")  # fmt: skip
@option("--terms", "Labels of a hierarchy: print sets with all that is above, or the most specific labels "
        "only.", type=click.Choice(["closed", "specific"]))  # fmt: skip
@option("--output-format", "JSON lines, or a table [by the name of --out, else jsonl].", type=_TABLES)
@option("--out -o FILE", "Write to a file in place of stdout (-): .jsonl, .csv, .tsv or .parquet.")
@option("--id COLUMN", "Table: the column that names the rows.")
@file_options
@signed_option
def predict(**flags: Any) -> None:
    """Predict the labels of the rows of a data file.

    Prints the label set that the model predicts, the best first, or the class of
    each row if the model has one class a row; rows without a name are numbered
    from zero.  Scores count from the model's thresholds, where it has any; what
    label sets of a model fitted with --conformal guarantee is told on stderr.  A
    table needs the feature columns that the model was fitted to, and no labels.

    \b
    Examples:
      labelweave predict tags.lw new.jsonl --top 5
      labelweave predict tags.lw new.csv --threshold 0.3 --output-format tsv
      labelweave predict bibtex.lw bibtex-test.arff --out labels.parquet
    """


@_command("labelweave.app.cli.evaluate")
@_model_and_data
@switch("--json as_json", "Print JSON, the numbers of every label too.")
@switch("--csv as_csv", "Print the numbers of every label, with commas between.")
@option("--dask local:N|ADDRESS", "Let the workers of a Dask cluster read the files that DATA, a folder or a "
        "pattern, names, each whole by one worker; without areas under curves of labels, log loss and "
        "calibration.")  # fmt: skip
@unknown_label_option
@_labelled
def evaluate(**flags: Any) -> None:
    """Compare a model's predictions with the labels of a data file.

    Labels are matched by name, or by number where a file has no names.  Labels
    and classes that are missing in DATA are not counted.  A table has its labels
    where the training table had them, unless flags say else.

    \b
    Examples:
      labelweave evaluate tags.lw test.jsonl
      labelweave evaluate bibtex.lw bibtex-test.arff --json
      labelweave evaluate tags.lw test.jsonl --csv > labels.csv
      labelweave evaluate movies.lw movies --dask local:4
    """


@_command("labelweave.app.cli.evaluate", "decide")
@_model_and_data
@option("--out -o FILE", "Where the model goes.", required=True)
@decision_options
@unknown_label_option
@switch("--quiet -q", "Write nothing but warnings and errors.")
@_labelled
def decide(**flags: Any) -> None:
    """Tune or calibrate a fitted model on held-out rows.

    Its decisions are made best for a measure, or bounded, or turned to probabilities.
    DATA are labelled rows that the model was not fitted to, all of which are used;
    the model stays as it is.  To hold rows out of the training data, give the same
    flags to fit.

    \b
    Examples:
      labelweave decide tags.lw held-out.csv --tune-threshold macro_f1 --out tuned.lw
      labelweave decide bibtex.lw held-out.arff --calibrate isotonic --out odds.lw
      labelweave decide odds.lw other.arff --conformal false_discoveries,level=0.2 \\
          --out sets.lw
    """


@_command("labelweave.app.cli.evaluate", "report")
@_model_and_data
@option("--out -o FILE", "Where the page goes (.html).", required=True)
@option("--title TEXT", "The heading of the page.")
@option("--weakest", "The most weak labels to look into.", type=click.IntRange(0), usual=20)
@option("--examples", "The most rows to show with all their labels.", type=click.IntRange(0), usual=6)
@unknown_label_option
@_quiet_option
@_labelled
def report(**flags: Any) -> None:
    """Write a page about a model and how well it does on a data file.

    The HTML page says what the model is, its certificate, the metrics, which labels
    are weak and why, how labels hang together, and shows rows with the words or
    features that pushed their labels up or down (linear models).  The file needs
    no other one, no network and no scripts.

    \b
    Examples:
      labelweave report tags.lw test.csv --out report.html
      labelweave report bibtex.lw bibtex-test.arff --weakest 50 --out report.html
    """


@_command("labelweave.app.cli.asking", "queries")
@_model_and_data
@option("--count -n", "How many entries to ask about.", type=COUNT, usual=50)
@option("--out -o FILE", "Where the table goes, in place of stdout (-).")
@option("--strategy", "By how much answers are expected to lower the errors of other entries, by how unsure "
        "the model is, or any.", type=click.Choice(["expected_error", "uncertainty", "random"]),
        usual="expected_error")  # fmt: skip
@option("--seed", "Draws what is left to chance.", type=SEED, usual=0)
@answers_option
@unknown_label_option
@_labelled
def queries(**flags: Any) -> None:
    """Choose which labels of which rows to ask for next.

    Writes a table of a line an entry, the most useful first, with the row's text
    and the model's guess.  Fill in the column 'answer' with yes, no or unknown, and
    give the file to labelweave fit with --answers.  Entries that are known in DATA
    or answered in --answers are not asked about.

    \b
    Examples:
      labelweave queries tags.lw packages.csv --count 100 --out ask.csv
      labelweave queries scene.lw scene-train.arff --answers ask.csv --out more.csv
    """


@_command("labelweave.app.cli.asking", "label")
@data_argument
@option("--answers FILE", "Where answers go, and where those of earlier times are [DATA's name with "
        ".answers.csv].")  # fmt: skip
@option("--new-label NAME...", "Ask about this label, of which DATA say nothing; repeat.")
@option("--port", "The port [any that is free].", type=click.IntRange(0, 65535), default=0)
@label_column_options
@column_options
@file_options
def label(**flags: Any) -> None:
    """Serve a page to label on, to this machine alone.

    Asks about the labels of rows whose answers are expected to improve a model
    most, with the row's text and the model's guess; keys y, n, d (don't know) and u
    (undo).  Every answer is on the disk before the next question, and the model is
    fitted behind the page.  Cells that DATA leave blank are unknown.

    \b
    Examples:
      labelweave label packages.csv --text description --label-column 'tag_*'
      labelweave label mails.csv --text body --new-label urgent --new-label spam
      labelweave fit mails.csv --text body --answers mails.answers.csv ...
    """


@_command("labelweave.app.cli.audit")
@data_argument
@option("--top", "Rank so many entries [as many as are expected to be wrong; 20 are shown].",
        type=click.IntRange(0))  # fmt: skip
@switch("--forgotten", "Labels are forgotten at most: those recorded are right.")
@option("--missed SHARE", "How many of the labels that are there are not recorded [estimated].",
        type=_SHARE, callback=no_nan)  # fmt: skip
@option("--false SHARE", "How many of the labels that are not there are recorded [estimated].",
        type=_SHARE, callback=no_nan)  # fmt: skip
@option("--taxonomy FILE", "A hierarchy over the labels, as for fit: near labels are asked first.")
@option("--covariance FILE", "A matrix over the labels, as for fit: related labels are asked first.")
@option("--time-budget SECONDS", "How long the model may take that scores the rows [300].",
        type=click.FloatRange(0, min_open=True), callback=no_nan)  # fmt: skip
@option("--out -o FILE", "Write the entries to a file too (.jsonl, .csv, .tsv or .parquet), or lines to "
        "stdout (-) with --output-format.")  # fmt: skip
@option("--output-format", "JSON lines, or a table [by the name of --out].", type=_TABLES)
@option("--jobs", "Threads that grow trees.", type=int)
@option("--seed", "Fixes folds and trees.", type=SEED, usual=0)
@_quiet_option
@label_column_options
@column_options
@file_options
def audit(**flags: Any) -> None:
    """Find labels of a data file that are probably wrong.

    Rows are scored by models that did not see them (AutoLabelClassifier), and the
    other labels of a row are asked too.  Shows which entries are probably wrong, the
    likeliest first, and which related labels speak against what is recorded: how
    much each adds to the expectation of the label.

    \b
    Examples:
      labelweave audit bibtex.arff --xml bibtex.xml
      labelweave audit packages.csv --text description --labels tags \\
          --label-separator , --id package --forgotten --out wrong.csv
    """


@_command("labelweave.app.cli.inspect")
@click.argument("model")
@option("--label NAME", "Show the features that speak for and against this label; of a low-rank model also "
        "the labels most like it, of a label-graph model those it is tied to.")  # fmt: skip
@option("--features count", "With --label: how many features of each kind, and labels.", type=COUNT, usual=10)
@switch("--covariance", "Show how the labels vary together a priori.")
@switch("--graph", "Show which labels are tied to which, and in which order that was learned.")
@switch("--thresholds", "Show from which score or probability on each label is predicted.")
@option("--out -o FILE", "With --covariance or --graph: draw it too (.png, .pdf, .svg).")
@signed_option
@switch("--json as_json", "Print JSON.")
def inspect(**flags: Any) -> None:
    """Say what a model file holds.

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
@option("--xml-out FILE", "Mulan: where the label names go [name.xml beside OUT].")
@switch("--lossy", "Leave out what the format cannot hold, such as names.")
@file_options
def convert(**flags: Any) -> None:
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


@_command("labelweave.app.cli.demo")
@option("--jobs", "Threads.", type=int, usual=2)
@option("--rows", "Use so many rows only.", type=COUNT, hidden=True)
@_quiet_option
def demo(**flags: Any) -> None:
    """Tag Debian packages with the bundled data set.

    Fits several models in one call, a max-margin model in which tags of one
    facet share what they learn, and one of independent tags; compares them on
    packages that were set aside; proposes tags for ten packages that have none.
    """
