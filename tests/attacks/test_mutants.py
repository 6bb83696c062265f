"""Mutants change the computation, and the tests that reach them are found."""

import ast

import pytest

from attacks import mutant_runs, mutants

pytest.importorskip("cosmic_ray", reason="mutants are made by cosmic-ray: pip install --group mutants")

PLACE = mutant_runs.ROOT / "src" / "labelweave" / "problems" / "losses" / "score_loss.py"


def test_mutants_are_of_statements_that_compute():
    text = PLACE.read_text()
    found = list(mutants.mutants(PLACE))
    assert len({mutant.key for mutant in found}) == len(found) > 50
    for mutant in found[::10]:
        assert ast.dump(ast.parse(mutant.source())) != ast.dump(ast.parse(text))
        assert "Array" not in mutant.said(mutant.source())["was"].split("=")[0]


def test_a_sample_is_drawn_again():
    drawn = mutants.sample(20, seed=3)
    assert drawn == mutants.sample(20, seed=3)
    assert {mutant.path.split("/")[2] for mutant in drawn} == set(mutants.SHARES)


def test_loops_that_have_another_one_in_them_are_compiled_anew_with_it():
    needed = mutant_runs._loops_that_need("labelweave.foundation.loops.margin_steps")
    assert "labelweave.foundation.loops.coordinate_ascent" in needed
    assert "labelweave.foundation.loops.f1_scores" not in needed
