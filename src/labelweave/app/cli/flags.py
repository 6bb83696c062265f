"""Flags about data files, which most commands have, and the record of their values.

Standard input is copied to a temporary file, since readers look at a file more than once.
"""

from __future__ import annotations

import math
import re
import sys
import weakref
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar

import click

from labelweave.app.cli.messages import KEY_FILE, flag_of, show_path_as

if TYPE_CHECKING:
    from labelweave.datasets import TableColumns, TableVectorizer
    from labelweave.datasets.data_file import PathLike

Command = TypeVar("Command", bound=Callable[..., Any])

WRITTEN = ("mulan", "hierarchical_arff", "xmc", "svmlight")  # formats of datasets, slow to import
_FORMATS = (*WRITTEN, "table")
_READERS = {"xml": "xml", "n_labels": "n_labels", "labels_at": "labels", "n_features": "n_features",
            "zero_based": "zero_based"}  # fmt: skip
_KINDS = {
    "text": "text, weighted as tf-idf; repeatable",
    "categorical": "categories; repeatable",
    "numeric": "numbers, standardized; repeatable",
    "vectors": "vectors, a column or .npy file; repeatable",
    "drop": "to ignore when kinds are guessed; repeatable",
}
_SHORTEST_KEY, _LONGEST_KEY = 16, 4096  # bytes
_TABLE_FLAGS = ("labels", "label_column", "label_separator", "label_names", "empty_labels", "id", "no_header",
                "groups", *_KINDS, "min_df", "ngrams", "missing_numeric", "encoder")  # fmt: skip
_NAMES = ("-", "/dev/stdin")
_SHOWN = "standard input"
_BLOCK_BYTES = 1 << 22
_MOST_BYTES = 1 << 33
_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_SVMLIGHT_LINE = re.compile(rb"[^\s:]*(?:\s+[^\s:]+:[^\s:]+)+\s*")


def data_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the path of a data file; for ``-``, of a copy of standard input."""
    if value not in _NAMES:
        return value
    if sys.stdin is None:
        raise click.UsageError("Standard input is closed; pipe a data file to it.")
    folder = mkdtemp(prefix="labelweave-")
    # if later flags are invalid, the context is never closed, only deleted
    context.call_on_close(weakref.finalize(context, rmtree, folder, ignore_errors=True))
    path = str(_copied(sys.stdin.buffer, Path(folder)))
    show_path_as(path, _SHOWN)
    return path


def _copied(stream: BinaryIO | Any, folder: Path) -> Path:
    """Write a stream to a file whose suffix is detected from its content."""
    block, size = stream.read(_BLOCK_BYTES), 0
    if not block:
        raise click.UsageError("Standard input is empty; pipe a data file to it.")
    path = folder / f"standard-input{_suffix(block)}"
    with path.open("wb") as file:
        while block:
            size += len(block)
            if size > _MOST_BYTES:
                raise click.UsageError(f"Standard input is longer than {_MOST_BYTES >> 30} GiB; use a file.")
            file.write(block)
            block = stream.read(_BLOCK_BYTES)
    return path


def _suffix(head: bytes) -> str:
    """Return the suffix of a data file that starts with these bytes."""
    if head.startswith(_PARQUET):
        return ".parquet"
    if head.startswith(_GZIP):
        try:
            return f"{_suffix(zlib.decompressobj(wbits=31).decompress(head, _BLOCK_BYTES))}.gz"
        except zlib.error:
            return ".csv.gz"  # its reader reports the error
    if b"\0" in head:
        raise click.UsageError("Standard input holds bytes that are not text; pipe a data file to it.")
    return _text_suffix(head.removeprefix(b"\xef\xbb\xbf"))


def _text_suffix(head: bytes) -> str:
    lines = (line.strip() for line in head.split(b"\n"))
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    if first.startswith((b"@", b"{")):
        return ".arff" if first.startswith(b"@") else ".jsonl"
    if re.fullmatch(rb"\d+\s+\d+\s+\d+|__label__.*|\[\s*([{\[].*)?", first):
        return ".txt"
    if _SVMLIGHT_LINE.fullmatch(first):
        return ".svm"
    return ".tsv" if first.count(b"\t") > first.count(b",") else ".csv"


class DataFlags(SimpleNamespace):
    """The flags of a command by name, None for those it lacks; readers of data files use them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # looked up by copy and pickle
            raise AttributeError(name)
        return None

    def format_of(self, path: str) -> str:
        from labelweave.datasets import detect_format

        labels = self.labels or self.label_column
        return self.format if self.format not in (None, "auto") else detect_format(path, labels)

    def matrix_keywords(self) -> dict[str, Any]:
        """Return reader keywords of formats other than tables; raise for flags of tables."""
        wrong = next((flag for flag in _TABLE_FLAGS if getattr(self, flag)), None)
        if wrong is not None:
            raise click.UsageError(f"{flag_of(wrong)} is only for tables, but this file is not a table.")
        found = {reader: getattr(self, flag) for flag, reader in _READERS.items()}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def unknown_labels(self) -> Literal["missed", "ignore", "raise"]:
        return "ignore" if self.ignore_unknown_labels else self.unknown or "missed"

    def columns(self) -> TableColumns:
        """Return the roles of a table's columns; raise for flags of other formats."""
        from labelweave.datasets import TableColumns

        wrong = next((flag for flag in _READERS if getattr(self, flag) is not None), None)
        if wrong is not None:
            raise click.UsageError(f"{flag_of(wrong)} is not for tables.")
        if self.labels and self.label_column:
            said = "--labels and --label-column both name labels; use one of them."
            raise click.UsageError(said)
        return TableColumns(
            labels=self.labels or self.label_column or None,
            label_separator=self.label_separator,
            empty_labels=self.empty_labels,
            id=self.id,
            no_header=bool(self.no_header),
            **{kind: getattr(self, kind) or None for kind in _KINDS} | self._without_groups(),  # type: ignore[arg-type]
        )

    def beside(self, path: str) -> tuple[PathLike, DataFlags]:
        """Add a file of --vectors, which is no column, to a table; name the new column."""
        from labelweave.datasets.table_reading import has_column
        from labelweave.datasets.vector_files import TableWithVectors, is_vector_file

        names = self.vectors or ()
        files = [one for one in names if is_vector_file(one) and not has_column(path, one, self.no_header)]
        if not files:
            return path, self
        if len(files) > 1:
            said = f"--vectors {files[0]} and {files[1]} are two files; merge their vectors into one."
            raise click.UsageError(said)
        table = TableWithVectors(path, files[0], self.id)
        columns = [name for name in names if name != files[0]]
        return table, DataFlags(**(vars(self) | {"vectors": [*columns, table.name]}))

    def _without_groups(self) -> dict[str, Any]:
        if not self.groups:
            return {}
        for role in ("labels", "label_column", "id", *_KINDS):
            given = getattr(self, role) or ()
            if role != "drop" and self.groups in ((given,) if isinstance(given, str) else given):
                said = f"The column {self.groups!r} is given as {flag_of(role)} and as --groups; choose one."
                raise click.UsageError(said)
        return {"drop": tuple(dict.fromkeys((*(self.drop or ()), self.groups)))}

    def vectorizer(self, columns: TableColumns) -> TableVectorizer:
        """Return the vectorizer of a table's columns; by default missing numbers get the mean."""
        from labelweave.datasets import TableVectorizer

        return TableVectorizer(
            **columns.kinds, min_df=self.min_df or 1, ngram_range=(1, self.ngrams or 1),
            missing_numeric=self.missing_numeric or "mean", encoder=self.encoder,
        )  # fmt: skip


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Combine several flags, in the order of the help."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def reading(read: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback that parses the value of a flag, if it is set."""
    return lambda context, parameter, value: None if value is None else read(value)


def plain_value(text: str) -> int | float | str:
    """Parse a whole number, any number, or a word."""
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return text


def _word_count(text: str) -> int | float:
    """Parse a count of rows, or a share of them."""
    count = plain_value(text)
    if not isinstance(count, str) and (count >= 1 if isinstance(count, int) else 0 < count <= 1):
        return count
    raise click.BadParameter(f"{text!r} is neither a count, such as 2, nor a share, such as 0.01.")


def _number(value: float) -> float:
    """Raise for NaN, which click's ranges accept."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a number.")
    return value


no_nan = reading(_number)
data_argument = click.argument("data", callback=data_path)
COUNT, SEED = click.IntRange(1), click.IntRange(0, 2**32 - 1)


def option(written: str, said: str, *, usual: Any = None, **how: Any) -> Callable[[Command], Command]:
    """Make a flag from its declaration, such as ``"--out -o FILE"``, and its help.

    A last word in capitals is the metavar, with "..." for multiple values; usual: the default in the help.
    """
    *names, last = written.split()
    if last.startswith("-") or last.islower():
        names, last = [*names, last], ""
    if last.endswith("...") and not last.endswith(",..."):
        how["multiple"], last = True, last.removesuffix("...")
    if last:
        how["metavar"] = last
    if usual is not None:
        how |= {"default": usual, "show_default": True}
    return click.option(*names, help=said, **how)


def switch(written: str, said: str) -> Callable[[Command], Command]:
    return option(written, said, is_flag=True)


file_options = with_options(
    option("--format", "Format of DATA, which may be - for standard input; detected from the content.",
           type=click.Choice(["auto", *_FORMATS]), default="auto"),
    option("--xml FILE", "Mulan: label names [name.xml next to name.arff]."),
    option("--n-labels", "Mulan, svmlight: number of labels.", type=COUNT),
    option("--labels-at", "Mulan with --n-labels: whether labels are the first or the last columns [end].",
           type=click.Choice(["start", "end"])),
    option("--n-features", "svmlight: number of features.", type=COUNT),
    option("--zero-based/--one-based", "svmlight: first feature index, 0 or 1 [as in the model's training "
           "file; without a model 0 if there is a feature 0].", default=None),
)  # fmt: skip

label_column_options = with_options(
    option("--labels COLUMN", "Table: the column that lists the labels of a row."),
    option("--label-separator TEXT", "Table: separator of these labels."),
    option("--empty-labels", "Table: meaning of a blank cell: no labels, or unknown labels "
           "[in the column of --labels none, in those of --label-column unknown, or as the model was "
           "trained].", type=click.Choice(["none", "unknown"])),
    option("--label-column COLUMN...", "Table: a column of 0 and 1 for one label, several as 'tag_*' or "
           "first..last; repeatable."),
    option("--id COLUMN", "Table: the column that names the rows."),
    switch("--no-header", "Table: the first line is a row, and columns are named 1, 2, 3 and so on."),
)  # fmt: skip

column_options = with_options(
    *(option(f"--{kind} COLUMN...", f"Table: {what}.") for kind, what in _KINDS.items()),
    option("--min-df NUMBER", "Table: least number or share of rows with a word [1].",
           callback=reading(_word_count)),
    option("--ngrams", "Table: the longest n-grams of words [1].", type=COUNT),
    option("--missing-numeric", "Table: raise an error for missing numbers, or impute the mean [mean].",
           type=click.Choice(["error", "mean"])),
)  # fmt: skip


def _key(path: str) -> bytes:
    with open(path, "rb") as file:
        key = file.read(_LONGEST_KEY + 1)
    if not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
        count = f"{len(key)} bytes" if len(key) <= _LONGEST_KEY else f"more than {_LONGEST_KEY} bytes"
        said = f"a key has {_SHORTEST_KEY} to {_LONGEST_KEY}, such as 32 random ones"
        raise click.BadParameter(f"{path} has {count}; {said}.")
    click.get_current_context().meta[KEY_FILE] = path
    return key


signing_option = option(
    "--key FILE", "Sign the model with the contents of this file, such as 32 random bytes; keep it "
    "secret.",
    callback=reading(_key),
)  # fmt: skip
signed_option = option(
    "--key FILE", "Reject a model that was not signed with the same --key.",
    callback=reading(_key),
)  # fmt: skip
answers_option = option(
    "--answers FILE", "Add these answers about single labels: lines id,label,answer (.csv), as "
    "labelweave queries and labelweave label write them.",
)  # fmt: skip
unknown_label_option = with_options(
    option("--unknown-labels unknown", "What to do with labels of DATA that the model lacks: count "
           "them as missed, ignore them, or raise an error [missed].",
           type=click.Choice(["missed", "ignore", "raise"])),
    switch("--ignore-unknown-labels", "Same as --unknown-labels ignore."),
)  # fmt: skip
