"""Models whose parts are of other models, as an edited file may have them, are refused."""

import numpy as np
import pytest

from labelweave import LabelGraphClassifier, LabelTreeClassifier, MaxMarginClassifier
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.model_files import ModelFileError

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(40, 3)), (RANDOM.random((40, 4)) < 0.5).astype(int)


@pytest.fixture(scope="module")
def graph_model():
    return LabelGraphClassifier(graph=CliqueGraph(4, [(0, 1), (1, 2)])).fit(X, Y)


def test_the_graph_of_a_model_is_that_of_its_scorer(graph_model):
    for cliques in ([(0, 1)], [(0, 1), (1, 3)]):
        state = graph_model.to_state()
        state["fitted"]["label_graph_"] = CliqueGraph(4, cliques)
        with pytest.raises(ModelFileError, match="has other cliques than the graph of its scorer_"):
            LabelGraphClassifier.from_state(state)


def test_a_model_that_needs_parts_of_its_scorer_has_one_of_its_kind(graph_model):
    linear = MaxMarginClassifier().fit(X, Y)
    for model, others in ((LabelTreeClassifier().fit(X, Y), (linear, graph_model)), (graph_model, (linear,))):
        for other in others:
            state = model.to_state()
            state["fitted"]["scorer_"] = other.scorer_
            with pytest.raises(ModelFileError, match="scorer_ is not an object of"):
                type(model).from_state(state)
