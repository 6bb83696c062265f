"""The help pages of commands that fit: the flags that most people need, or all of them, in sections."""

from __future__ import annotations

from typing import Any

import click

from labelweave.app.cli.model_flags import ModelFlag
from labelweave.app.cli.model_table import MODELS

_MANY = 4  # models that share a flag: it is of all
_SECTIONS = {
    "How labels go together": (
        "graph", "taxonomy", "data_taxonomy", "covariance", "covariance_from", "signatures", "shrink",
        "label_descriptions", "one_class", "class_paths",
    ),
    "From scores to decisions": ("enforce", "calibrate", "tune_threshold", "conformal"),
    "Comparing": ("compare", "compare_folds"),
    "DATA that is a table": (
        "labels", "label_separator", "empty_labels", "label_column", "id", "text", "categorical", "numeric",
        "drop", "min_df", "ngrams", "missing_numeric",
    ),
    "DATA in other formats": ("format", "xml", "n_labels", "labels_at", "n_features", "zero_based"),
}  # fmt: skip
_SECTION_OF = {name: title for title, names in _SECTIONS.items() for name in names}
_ANY, _SEVERAL, _USUAL = "Most models", "Several models", "Options"
_FEW = ("out", "model", "labels", "label_separator", "label_column", "text", "categorical", "numeric", "id",
        "xml", "time_budget", "jobs", "seed", "folds", "as_json", "quiet", "help_all")  # fmt: skip
_ALL = "labelweave.help_all"  # where a context of click has whether all flags are asked for
_NARROW = 25  # columns of flags where there are few


class FitCommand(click.Command):
    """A command with the flags of all models; after ``--model NAME`` its help has those of this one alone."""

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
    """Name the section of a flag."""
    if name in _SECTION_OF:
        return _SECTION_OF[name]
    if len(owners) == 1:
        return f"--model {owners[0]}"
    return _USUAL if not owners else _ANY if len(owners) >= _MANY else _SEVERAL
