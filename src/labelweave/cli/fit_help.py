"""The help pages of commands that fit: flags in sections, those of a model under its name."""

from __future__ import annotations

import click

from labelweave.cli.model_table import MODELS, model_table

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


class FitCommand(click.Command):
    """A command with the flags of all models; after ``--model NAME`` its help shows only the model's own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        order = (_USUAL, _ANY, _SEVERAL, *(f"--model {model}" for model in MODELS), *_SECTIONS)
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in order}
        chosen = ctx.params.get("model") if _is_given(ctx) else None
        for parameter in filter(lambda one: isinstance(one, click.Option), self.get_params(ctx)):
            record, owners = parameter.get_help_record(ctx), model_table().flags.get(str(parameter.name), {})
            if record is not None and (chosen is None or not owners or chosen in owners):
                sections[_section(str(parameter.name), list(owners))].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


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
