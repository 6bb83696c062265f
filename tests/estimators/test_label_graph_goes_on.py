"""Label graphs that begin where others ended: warm starts and checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

from drawn import draw_labels
from labelweave import LabelGraphClassifier
from labelweave.estimators import journal
from labelweave.model_files import (
    ModelContent,
    ModelFileError,
    decode,
    encode,
    read_model_file,
    write_model_file,
)

FITS = {
    "learned": {},
    "measured": {"early_stopping": True, "refit": True},
    "given": {"graph": "full"},
    "proximal": {"solver": "proximal", "graph": [(0, 1), (1, 2)]},
    "thresholds": {"graph": "chow-liu", "threshold": "f1"},
    "scores": {"inputs": "scores", "kernel": "rbf"},
}


def data():
    return draw_labels(above=0.5, missing=0.1)


def model(**parameters):
    return LabelGraphClassifier(**({"regularization": 0.05, "max_rounds": 2, "tol": 0.02} | parameters))


@pytest.mark.parametrize("fit", ["learned", "measured", "given", "thresholds", "scores"])
def test_a_warm_start_from_the_optimum_needs_few_passes(fit):
    X, Y = data()
    fitted = model(warm_start=True, **FITS[fit]).fit(X, np.nan_to_num(Y))
    cold, cliques, objective = fitted.n_iter_, fitted.label_graph_.cliques, fitted.objective_
    fitted.fit(X, np.nan_to_num(Y))
    assert fitted.n_iter_ < 0.8 * cold
    assert fitted.label_graph_.cliques == cliques
    assert fitted.objective_ == pytest.approx(objective, rel=0.03)
    assert [record.cliques for record in fitted.graph_trace_] == [
        record.cliques for record in model(**FITS[fit]).fit(X, np.nan_to_num(Y)).graph_trace_
    ]


def test_a_warm_start_goes_on_growing_and_with_another_penalty():
    X, Y = data()
    fitted = model(warm_start=True, graph_tol=0.0, regularization=0.01).fit(X, Y)
    assert fitted.label_graph_.n_cliques == 2
    first = fitted.label_graph_.cliques
    fitted.set_params(max_rounds=3).fit(X, Y)
    assert fitted.label_graph_.cliques[:2] == first
    assert fitted.label_graph_.n_cliques == 3
    Y = np.nan_to_num(Y)
    given = model(warm_start=True, graph="full", tol=1e-3).fit(X, Y)
    warm = given.set_params(regularization=0.06).fit(X, Y)
    cold = model(graph="full", tol=1e-3, regularization=0.06).fit(X, Y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=3e-3)


def test_other_shapes_begin_afresh():
    X, Y = data()
    fitted = model(warm_start=True, graph="full").fit(X, Y)
    fitted.fit(X[:40], Y[:40])
    np.testing.assert_array_equal(fitted.coef_, model(graph="full").fit(X[:40], Y[:40]).coef_)
    fitted.set_params(graph="chow-liu").fit(X, Y)
    np.testing.assert_array_equal(fitted.coef_, model(graph="chow-liu").fit(X, Y).coef_)


def spoil_iterations(plain):
    for name, part in plain.items() if isinstance(plain, dict) else enumerate(plain):
        if name == "iteration":
            plain[name] = np.zeros(2)
        elif isinstance(part, dict | list | tuple):
            spoil_iterations(part)


def test_an_edited_checkpoint_is_refused_in_a_sentence(tmp_path, monkeypatch):
    """Its checksum may be right: records that are no numbers, a place of a random stream that is none."""
    X, Y = data()
    written = []

    def noted(self, stage, state):
        usual(self, stage, state)
        self.write()
        written.append((self.path.read_bytes(), stage))

    usual = journal.Journal.note
    monkeypatch.setattr(journal.Journal, "note", noted)
    path = tmp_path / "fit.lwc"
    model(checkpoint=path).fit(X, Y)
    monkeypatch.setattr(journal.Journal, "note", usual)
    path.write_bytes(written[-1][0])
    content = read_model_file(path)
    plain = decode(content.state, content.arrays)
    spoil_iterations(plain["states"])
    arrays = {}
    write_model_file(path, ModelContent("Checkpoint", encode(plain, arrays), arrays))
    with pytest.raises(ModelFileError, match="The iteration of a TraceRecord is no number"):
        model(checkpoint=path).fit(X, Y)
    with pytest.raises(ModelFileError, match="is no state"):
        journal._state_of("a", {"kind of state": "Generator", "stream": {"bit_generator": "PCG64", "state": {
            "state": 2**200, "inc": 1}, "has_uint32": 0, "uinteger": 2**99}})  # fmt: skip
