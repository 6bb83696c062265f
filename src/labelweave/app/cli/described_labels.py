"""Models of labels that a file describes."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave import LabelText, LabelTextClassifier
from labelweave.app.cli.fit_request import FitRequest
from labelweave.app.cli.label_relations import Targets
from labelweave.app.cli.messages import note
from labelweave.app.cli.relation_files import read_descriptions
from labelweave.datasets import read_taxonomy


def model_of_texts(request: FitRequest, targets: Targets) -> Any:
    """Make the classifier around a model, or around the usual one where no flag is of a model."""
    relations, rows = request.relations, targets.rows
    assert relations.label_descriptions is not None, "texts are asked for"
    given = read_descriptions(relations.label_descriptions)
    every = {
        name: given.get(name, "") for name in [*targets.names, *(n for n in given if n not in targets.names)]
    }
    text = LabelText(every)
    features = rows.feature_names if rows.vectorizer is None else rows.vectorizer.get_feature_names_out()
    if not request.quiet:
        _note(request, targets, given, has_words=features is not None)
    tree = rows.taxonomy if relations.data_taxonomy else None
    if relations.taxonomy:
        tree = read_taxonomy(relations.taxonomy)
    estimator = request.classifier({}) if request.given or request.is_model_named else None
    words = None if features is None else np.asarray(features, dtype=object)
    return LabelTextClassifier(estimator, text, feature_names=words, taxonomy=tree, random_state=request.seed)


def _note(request: FitRequest, targets: Targets, given: dict[str, str], *, has_words: bool) -> None:
    known, more = set(targets.names), [name for name in given if name not in targets.names]
    silent = len(known - set(given))
    if silent:
        note(f"{silent} of {len(known)} labels have no description; their names are all that is known.")
    if more:
        note(f"{len(more)} described labels, such as {more[0][:40]!r}, are in no row; texts tell of them.")
    if not has_words:
        note(
            f"{request.data} has no names of features, so that words of rows are not known; labels only vary "
            "together as their texts say."
        )
