"""Tests run as on other machines, and what cannot run is listed."""

import pytest

portable = pytest.importorskip("attacks.portable")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["blank and accent", pytest.param("sums by shape", marks=pytest.mark.search)]
)
def test_a_line_runs_tests_and_tells_of_failures(name, tmp_path, capsys):
    own = tmp_path / "test_own.py"
    own.write_text("def test_good(): pass\ndef test_bad(): assert not 'labelweave'\n")
    assert portable.run(name, ["tests/test_arguments.py"], tmp_path)
    assert not portable.run(name, [str(own)], tmp_path)
    said = capsys.readouterr().out
    assert "not run" in said or ("FAILED" in said and "test_bad" in said and "1 passed" in said)


def test_what_cannot_run_is_said(monkeypatch, tmp_path, capsys):
    def without(_):
        raise portable.CannotRunError("it is away")

    monkeypatch.setitem(portable.MACHINES, "as it is", without)
    assert portable.run("as it is", [], tmp_path)
    assert capsys.readouterr().out == "as it is: not run, it is away.\n"


def test_the_short_form_runs_what_is_there():
    paths = {path for tests in portable.SHORT.values() for path in tests}
    assert [path for path in paths if not (portable.ROOT / path).exists()] == []
