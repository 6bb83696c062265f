"""Low-rank learning on the command line; rank and penalty chosen by cross-validation."""

import signal

import numpy as np
import pytest

import labelweave
from commands import loaded
from labelweave import LowRankClassifier
from labelweave.app.cli import fit_words as progress

LOW_RANK = "--model low-rank --out m.lw"


def test_the_summary(run, matrix_files):
    done = run(f"fit d.txt {LOW_RANK} --rank 0.4")
    assert done.out == ""
    model, lines = loaded(), done.err.splitlines()
    assert "rank      2 (requested 0.4 of the labels)" in lines
    fit = next(line for line in lines if line.startswith("fit "))
    assert fit.startswith(f"fit       {model.n_iter_} rounds in ")
    assert fit.endswith(f" s, objective {model.objective_:.6g}, settled")
    assert f"gap       {model.duality_gap_:.2e} at most, to factors of any rank" in lines
    limit = next(line for line in lines if line.startswith("the rank "))
    assert limit.startswith("the rank  the factors converged at rank 2, and the gap is that of the problem")
    assert "threshold 0.5" in lines
    ridge = run(f"fit d.txt {LOW_RANK} --penalty ridge --tune-threshold macro_f1").err
    assert "rank      5 (requested 100; no product of factors has more)" in ridge
    assert " at most, to factors of this rank" in ridge
    logistic = run(f"fit d.txt {LOW_RANK} --penalty ridge --loss log_loss").err
    assert "gap       no bound with the penalty ridge" in logistic
    assert "one threshold per label, from " in ridge


def test_what_was_learned_is_said(run, matrix_files):
    words = ["--penalty", "ridge", "--hyperparameters", "learn", "--kernel", "rbf", "--max-learning-iter", 1]
    done = run(f"fit d.txt {LOW_RANK}", *words)
    assert "learned   alpha " in done.err
    assert "may still improve after --max-learning-iter 1 evaluations" in done.err
    text = run("inspect m.lw").out
    assert "learned     alpha " in text
    assert "learning    " in text
    facts = run("inspect m.lw --json").json
    assert facts["hyperparameters"] == pytest.approx(loaded().hyperparameters_)
    run(f"fit d.txt {LOW_RANK} -q")
    assert not {"learned", "learning"} & {line.split()[0] for line in run("inspect m.lw").out.splitlines()}


def test_inspect_describes_the_product_of_the_factors(run, matrix_files):
    run(f"fit d.arff {LOW_RANK} --rank 3 -q")
    model = loaded()
    Z = model.feature_factors_ @ model.label_factors_.T
    facts = run("inspect m.lw --json").json["factors"]
    np.testing.assert_allclose(facts["singular_values"], np.linalg.svd(Z, compute_uv=False)[:3], rtol=1e-4)
    lengths = np.linalg.norm(Z, axis=0)
    assert [entry["label"] for entry in facts["longest_labels"]] == [
        f"l{k}" for k in np.argsort(-lengths)[:10]
    ]
    assert facts["longest_labels"][0]["length"] == pytest.approx(lengths.max(), rel=1e-4)
    text = run("inspect m.lw").out
    assert text.index("\nkernel ") < text.index("\nrank ") < text.index("\nthreshold ") < text.index("\nfit ")
    for words in ("rank        3\n", "singular    ", "labels with the longest weights: ", "objective "):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80


def test_inspect_describes_a_label(run, matrix_files):
    run(f"fit d.arff {LOW_RANK} --rank 3 -q")
    model = loaded()
    Z = model.feature_factors_ @ model.label_factors_.T
    facts = run("inspect m.lw --label l2 --features 4 --json").json
    assert [entry["feature"] for entry in facts["for"]] == [f"f{j}" for j in np.argsort(-Z[:, 2])[:4]]
    cosines = (Z.T @ Z[:, 2]) / np.linalg.norm(Z, axis=0) / np.linalg.norm(Z[:, 2])
    cosines[2] = -2
    assert [entry["label"] for entry in facts["similar"]] == [f"l{k}" for k in np.argsort(-cosines)[:4]]
    assert facts["similar"][0]["cosine"] == pytest.approx(cosines.max(), abs=1e-4)
    text = run("inspect m.lw --label l2").out
    assert "\nmost similar labels:\n" in text


@pytest.mark.parametrize("words", [["--kernel-rank", 25], []])
def test_inspect_of_a_kernel_measures_in_its_space(run, matrix_files, words):
    run(f"fit d.txt {LOW_RANK} --rank 3 --kernel rbf --gamma 0.3", *words, "-q")
    model = loaded()
    support = model.support_vectors_.toarray()
    squares = ((support[:, None] - support) ** 2).sum(axis=2)
    root = np.linalg.cholesky(np.exp(-0.3 * squares) + 1e-10 * np.eye(len(support)))
    Z = root.T @ model.feature_factors_ @ model.label_factors_.T
    facts = run("inspect m.lw --json").json
    np.testing.assert_allclose(
        facts["factors"]["singular_values"], np.linalg.svd(Z, compute_uv=False)[:3], rtol=1e-3
    )
    label = run("inspect m.lw --label 1 --json").json
    assert len(label["similar"]) == 4
    assert "for" not in label
    assert "for:" not in run("inspect m.lw --label 1").out


def test_inspect_of_a_kernel_that_is_not_at_hand(run, rows, tmp_path):
    gram = (rows.X @ rows.X.T).toarray()
    LowRankClassifier(2, kernel="precomputed").fit(gram, rows.Y).save(tmp_path / "gram.lw")
    assert run("inspect gram.lw --json").json["factors"]["singular_values"] is None
    assert "singular    not computed" in run("inspect gram.lw").out
    assert "most similar labels" in run("inspect gram.lw --label 0").out


@pytest.mark.slow
def test_what_was_chosen_is_said(run, matrix_files):
    choice = ["--ranks", "1,3", "--alphas", "0.1,1", "--cv", 3, "--scoring", "loss"]
    done = run(f"fit d.txt {LOW_RANK}", *choice)
    model = labelweave.load("m.lw")
    chosen = f"rank {model.best_rank_}, alpha {model.best_alpha_:.4g}, the best of 4 pairs"
    assert f"rank      {model.best_rank_} (chosen by cross-validation)" in done.err.splitlines()
    assert f"chosen    {chosen} on 3 folds: mean loss" in done.err
    assert f"chosen      {chosen} on 3 folds: mean" in run("inspect m.lw").out
    facts = run("inspect m.lw --json").json["choice"]
    assert facts["rank"] == model.best_rank_
    assert facts["status"] == "complete"
    assert [(pair["rank"], pair["alpha"]) for pair in facts["pairs"]] == [
        (3, 1.0), (1, 1.0), (3, 0.1), (1, 0.1)
    ]  # fmt: skip
    assert facts["score"] == max(pair["mean_test_score"] for pair in facts["pairs"])
    run(f"fit d.txt {LOW_RANK} --ranks 1,3 --alphas 10 --scoring loss --rule one_standard_error -q")
    assert "within a standard error of the best of 20" in " ".join(run("inspect m.lw").out.split())
    assert "precision@1" in run("evaluate m.lw d.txt --json").json


def _interrupt_at(monkeypatch, state):
    def show(lines):
        if lines.state == state:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(progress.GapLines, "show", show)


def test_an_interrupt_saves_the_best_pair_so_far(run, matrix_files, monkeypatch):
    _interrupt_at(monkeypatch, "fit 3 of at most 12 to folds")
    words = ["--ranks", "1,3", "--alphas", "0.1,1", "--cv", 3]
    done = run(f"fit d.txt {LOW_RANK}", *words, code=130)
    assert "labelweave: The cross-validation was interrupted after 3 of 12" in done.err
    assert "Traceback" not in done.err
    assert labelweave.load("m.lw").search_status_ == "interrupted"
    assert "(interrupted)" in run("inspect m.lw").out
