import pytest

from labelweave.app.cli.comparing import models_to_compare


def test_models_are_compared_before_the_fit(run, matrix_files, tmp_path):
    words = ["--compare", "low-rank, binary-relevance", "--compare-folds", 2, "--out", "m.lw"]
    done = run("fit", matrix_files["mulan"], "--model", "max-margin", "--tol", 1e-2, *words)
    for word in (
        "max-margin",
        "low-rank",
        "binary-relevance",
        "micro_f1",
        "fit_seconds",
        "mean over 2 folds",
    ):
        assert word in done.out
    assert (tmp_path / "m.lw").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--compare", "svm"], "'svm', which is no model"),
        (["--compare", "max-margin"], "max-margin twice"),
        (["--compare", "binary-relevance,binary-relevance"], "binary-relevance twice"),
        (["--compare", "binary-relevance", "--compare-folds", 1], "compare-folds"),
        (
            ["--compare", "binary-relevance", "--compare-folds", 9999],
            "--compare-folds 9999 needs as many rows",
        ),
    ],
)
def test_nonsense_is_one_sentence(run, matrix_files, words, said):
    done = run("fit", matrix_files["mulan"], "--model", "max-margin", "--out", "m.lw", *words, code=2)
    assert said in done.err
    assert "Traceback" not in done.err


def test_models_of_label_sets_are_refused_for_classes():
    with pytest.raises(Exception, match="many labels a row"):
        models_to_compare("binary-relevance", "max-margin", are_classes=True)
