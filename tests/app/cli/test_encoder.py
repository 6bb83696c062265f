"""``labelweave fit --encoder static``: printed by --dry-run, and not needed to predict."""

import json

import pandas as pd
import pytest

import labelweave as lw
from commands import invoke

ANIMALS, VEHICLES = (
    ["dog", "cat", "horse", "cow", "sheep", "goat"],
    ["car", "train", "ship", "bus", "truck", "plane"],
)
FIT = "fit t.csv --text title --labels kind --model max-margin --encoder static"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Write a table of texts whose words occur once."""
    monkeypatch.chdir(tmp_path)
    titles = [*ANIMALS, *VEHICLES]
    pd.DataFrame({"title": titles, "kind": ["animal"] * 6 + ["vehicle"] * 6}).to_csv("t.csv", index=False)
    pd.DataFrame({"title": ["pig", "boat"]}).to_csv("new.csv", index=False)


def test_models_of_texts_and_vectors_predict_without_a_flag():
    made = invoke(f"{FIT} --out m.lw".split())
    assert "encoder       static (256 numbers per text, weight" in made.err
    found = [json.loads(line)["class"] for line in invoke(["predict", "m.lw", "new.csv"]).out.splitlines()]
    assert found == ["animal", "vehicle"]
    assert lw.load("m.lw").vectorizer_.encoder_weight > 0
    assert json.loads(invoke(["inspect", "m.lw", "--json"]).out)["columns"]["encoder"].startswith(
        "static, weight"
    )


def test_a_dry_run_says_it():
    shown = invoke(f"{FIT} --dry-run".split()).out
    assert "encoder       static (256 numbers per text, weight" in shown


def test_words_that_say_all_are_left_alone():
    titles = ["red rose", "blue sea", "red sun", "blue sky"] * 10
    pd.DataFrame({"title": titles, "kind": ["red", "blue"] * 20}).to_csv("t.csv", index=False)
    assert "encoder       static (words alone are better)" in invoke(f"{FIT} --out m.lw".split()).err
