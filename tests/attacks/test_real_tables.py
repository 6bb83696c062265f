"""Real files of other packages; all of them by ``python -m attacks.real_tables``."""

import pytest

pytest.importorskip("pandas")
real_tables = pytest.importorskip("attacks.real_tables")


def test_what_a_file_is_not_read_as_is_seen(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("size,kind\n" + "".join(f"{k}.5,{'ab'[k % 2]}\n" for k in range(9)))
    expected = real_tables.RealFile("a.csv", "--labels kind", ("2 labels", "numeric size"))
    monkeypatch.setattr(real_tables, "FILES", [expected, expected._replace(phrases=("3 labels",))])
    (found,) = real_tables.attack(tmp_path)
    assert found.startswith("a.csv --labels kind: no '3 labels' in format table (csv")


def test_twenty_files_of_several_packages_are_named():
    assert len(real_tables.FILES) >= 20
    assert len({file.place.partition("/")[0] for file in real_tables.FILES}) >= 4
