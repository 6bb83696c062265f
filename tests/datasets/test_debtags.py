import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import LabelBinarizer

from labelweave.datasets.debtags import load_debtags
from labelweave.labels.label_matrix import LabelMatrix

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "build_debtags.py"
DATA = ROOT / "src" / "labelweave" / "datasets" / "debtags"

INDEX = """\
Package: libtune3
Source: tune (3.1-2)
Version: 3.1-2+b1
Pre-Depends: dpkg (>= 1.17)
Depends: libc6 (>= 2.34), libasound2 | libasound2-dev, python3:any, libc6 (<< 3)
Description: Plays the tunes of C++ programs
Tag: role::shared-lib, devel::TODO,
 works-with::audio, special::not-yet-tagged
Section: libs

Package: tune
Version: 3.1-2
Depends: libc6
Description: play 3D tunes
Tag: role::program, works-with::audio
Section: sound

Package: tune
Version: 3.1-1
Description: an older stanza of the same package
Tag: role::rare
Section: sound

Package: odd
Description: play nothing
Tag: culture::TODO
Section: sound

Package: plain
Description: untagged mystery tunes
Section: sound
"""


@pytest.fixture(scope="module")
def bunch():
    return load_debtags()


@pytest.fixture(scope="module")
def build():
    specification = importlib.util.spec_from_file_location("build_debtags", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules["build_debtags"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["build_debtags"]


@pytest.fixture
def stanzas(build):
    return list(build.parse_stanzas(INDEX.splitlines()))


def made_up_index(n_packages):
    """Write an index in which every package has a source of its own and a word all share."""
    return "".join(
        f"Package: game-{chr(97 + i % 26)}{chr(97 + i // 26)}\nDescription: jolly game\nSection: games\n"
        + ("" if i % 5 == 0 else f"Tag: use::gameplaying{', role::program' if i % 2 else ''}\n")
        + "\n"
        for i in range(n_packages)
    )


# --- the data set ---


def test_shapes_agree(bunch):
    n, d = bunch.X.shape
    m, n_labels = bunch.Y_test.shape
    assert bunch.Y.shape == (n, n_labels)
    assert bunch.X_test.shape == (m, d)
    assert bunch.X_untagged.shape == (len(bunch.names_untagged), d)
    assert (len(bunch.feature_names), len(bunch.label_names)) == (d, n_labels)
    for suffix, rows in {"": n, "_test": m, "_untagged": bunch.X_untagged.shape[0]}.items():
        for column in ("names", "descriptions", "source_ids"):
            assert len(bunch[column + suffix]) == rows
    assert 0.65 < n / (n + m) < 0.75


def test_return_X_y_gives_the_same_matrices_and_loading_twice_is_equal(bunch):
    again = load_debtags(return_X_y=True)
    for loaded, kept in zip(again, (bunch.X, bunch.Y, bunch.X_test, bunch.Y_test), strict=True):
        assert isinstance(loaded, sp.csr_array)
        np.testing.assert_array_equal(loaded.indptr, kept.indptr)
        np.testing.assert_array_equal(loaded.indices, kept.indices)
        np.testing.assert_array_equal(loaded.data, kept.data)


@pytest.mark.parametrize("part", ["X", "X_test", "X_untagged"])
def test_feature_rows_are_finite_and_of_unit_length(bunch, part):
    X = bunch[part]
    assert X.dtype == np.float64
    assert X.has_canonical_format
    assert (X.data > 0).all()
    np.testing.assert_allclose(np.sqrt(X.power(2).sum(axis=1)), 1.0, rtol=1e-12)


def test_every_feature_occurs_in_two_training_rows_and_none_is_a_tag(bunch):
    assert np.bincount(bunch.X.indices, minlength=bunch.X.shape[1]).min() >= 2
    assert list(bunch.feature_names) == sorted(set(bunch.feature_names))
    assert {name.partition(":")[0] for name in bunch.feature_names} == {"word", "depends", "section"}
    assert not [name for name in bunch.feature_names if "::" in name]


def test_weights_are_tf_idf_as_the_training_rows_have_it(bunch):
    with np.load(DATA / "debtags.npz", allow_pickle=False) as arrays:
        counts, columns = arrays["features_counts"].astype(float), arrays["features_indices"]
        starts = np.concatenate([[0], np.cumsum(arrays["features_lengths"], dtype=int)])
        n = int(arrays["row_counts"][0])
    documents = np.bincount(columns[: starts[n]], minlength=bunch.X.shape[1])
    idf = np.log((1 + n) / (1 + documents)) + 1
    for row in (0, 17, 4321):
        entries = slice(starts[n + row], starts[n + row + 1])
        weights = (1 + np.log(counts[entries])) * idf[columns[entries]]
        kept = bunch.X_test[[row]]
        np.testing.assert_array_equal(kept.indices, columns[entries])
        np.testing.assert_allclose(kept.data, weights / np.linalg.norm(weights), rtol=1e-12)


def test_labels_are_binary_and_frequent_and_on_both_sides(bunch):
    for Y in (bunch.Y, bunch.Y_test):
        assert (Y.data == 1).all()
        assert Y.has_canonical_format
        assert np.diff(Y.indptr).min() >= 1
    train, test = (LabelMatrix.from_any(Y).positive_counts() for Y in (bunch.Y, bunch.Y_test))
    assert (train + test).min() >= 20
    assert min(train.min(), test.min()) >= 1


def test_label_entries_suit_scikit_learn(bunch):
    # its LabelBinarizer numbers labels in Y's own type: 8 bits mix up those past 127
    binarized = LabelBinarizer(sparse_output=True).fit_transform(bunch.Y)
    assert (sp.csr_array(binarized) != bunch.Y).nnz == 0


def test_label_names_are_tags_under_their_facets(bunch):
    assert list(bunch.label_names) == sorted(set(bunch.label_names))
    assert "role::program" in bunch.label_names
    assert not [name for name in bunch.label_names if "TODO" in name or name.startswith("special::")]
    np.testing.assert_array_equal(bunch.parents[:, 1], bunch.label_names)
    assert [name.partition("::")[0] for name in bunch.label_names] == list(bunch.parents[:, 0])
    assert not set(bunch.parents[:, 0]) & set(bunch.label_names)


def test_no_package_is_in_two_parts_and_no_source_on_both_sides(bunch):
    names = np.concatenate([bunch.names, bunch.names_test, bunch.names_untagged])
    assert len(set(names)) == len(names)
    assert not set(bunch.source_ids) & set(bunch.source_ids_test)


def test_a_known_package_has_its_words_dependencies_and_tags(bunch):
    place = int(np.flatnonzero(np.concatenate([bunch.names, bunch.names_test]) == "bash")[0])
    row = sp.vstack([bunch.X, bunch.X_test]).tocsr()[[place]]
    features = set(bunch.feature_names[row.indices])
    assert {"word:bash", "word:shell", "section:shells"} <= features
    labels = sp.vstack([bunch.Y, bunch.Y_test]).tocsr()[[place]]
    assert {"interface::shell", "role::program"} <= set(bunch.label_names[labels.indices])


def test_archive_and_description_are_given(bunch):
    assert {"suite", "version", "date"} <= set(bunch.archive)
    assert bunch.archive["origin"] == "Debian"
    assert f"| train | {bunch.X.shape[0]} |" in bunch.DESCR
    assert f"version: {bunch.archive['version']}" in bunch.DESCR


# --- the script ---


def test_stanzas_join_folded_fields(stanzas):
    assert [stanza["Package"] for stanza in stanzas] == ["libtune3", "tune", "tune", "odd", "plain"]
    assert stanzas[0]["Tag"].endswith("devel::TODO, works-with::audio, special::not-yet-tagged")


def test_package_fields(build, stanzas):
    package = build.read_package(stanzas[0])
    assert package.source == "tune"
    assert package.tags == {"role::shared-lib", "works-with::audio"}
    assert sorted(package.features) == sorted(
        ["word:lib", "word:tune", "word:plays", "word:tunes", "word:c++", "word:programs", "section:libs"]
        + [f"depends:{name}" for name in ("dpkg", "libasound2", "libc6", "python3")]
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("libpng16-16", ["lib", "png"]),
        ("lib-foo", ["lib", "foo"]),
        ("python3-numpy", ["python", "numpy"]),
        ("g++-12", ["g++"]),
        ("libgtk2.0-cil", ["lib", "gtk", "cil"]),
    ],
)
def test_name_words(build, name, words):
    assert build.name_words(name) == words


def test_features_do_not_depend_on_tags(build, stanzas):
    for stanza in stanzas:
        untagged = {key: value for key, value in stanza.items() if key != "Tag"}
        assert build.read_package(untagged).features == build.read_package(stanza).features


def test_select_keeps_one_stanza_and_drops_packages_without_a_kept_tag(build, stanzas, monkeypatch):
    monkeypatch.setattr(build, "is_test_source", lambda source: False)
    selection = build.select(stanzas, minimum_label_packages=1)
    assert selection.labels == ["role::program", "role::shared-lib", "works-with::audio"]
    assert [package.name for package in selection.train] == ["libtune3", "tune"]
    assert [package.name for package in selection.untagged] == ["plain"]
    assert selection.dropped == {"repeated": 1, "rare_labels": 0, "without_label": 1, "without_feature": 0}
    # "untagged" and "mystery" occur in the untagged package alone
    assert build.training_vocabulary(selection.train) == ["depends:libc6", "word:tune", "word:tunes"]


def test_rare_labels_are_dropped(build, stanzas, monkeypatch):
    monkeypatch.setattr(build, "is_test_source", lambda source: False)
    selection = build.select(stanzas, minimum_label_packages=2)
    assert selection.labels == ["works-with::audio"]
    assert selection.dropped["rare_labels"] == 2


def test_sources_stay_together_and_about_three_in_ten_are_for_testing(build):
    sides = [build.is_test_source(f"source-{number}") for number in range(4000)]
    assert 0.27 < np.mean(sides) < 0.33
    assert sides == [build.is_test_source(f"source-{number}") for number in range(4000)]


def test_the_command_writes_the_same_bytes_twice(build, tmp_path, monkeypatch, capsys):
    index, release = tmp_path / "Packages", tmp_path / "Release"
    index.write_text(made_up_index(200), encoding="utf-8")
    release.write_text("Origin: Debian\nSuite: stable\nVersion: 99.1\nDate: today\n", encoding="utf-8")
    for folder in ("first", "second"):
        words = ["--packages", index, "--release", release, "--output", tmp_path / folder]
        monkeypatch.setattr(sys, "argv", ["build_debtags.py", *map(str, words)])
        build.main()
    for name in ("debtags.npz", "README.md"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    with np.load(tmp_path / "first" / "debtags.npz", allow_pickle=False) as arrays:
        assert arrays["row_counts"].tolist()[2] == 40
        assert arrays["label_names"].tobytes() == b"role::program\nuse::gameplaying"
        counts = arrays["features_lengths"]
    assert counts.sum() > 0
    assert '"version": "99.1"' in capsys.readouterr().out


def test_release_facts_skip_the_signature(build):
    text = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOrigin: Debian\nSuite: stable\nVersion: 1.2\n"
    facts = build.archive_facts(text)
    assert (facts["suite"], facts["version"], facts["date"]) == ("stable", "1.2", "unknown")


def test_only_the_main_suite_of_debian_is_read(build, monkeypatch):
    def answer(command):
        if command[0] == "dpkg":
            return "amd64\n"
        record = "Filename: {0}\nLabel: {1}\nCodename: {0}\nArchitecture: {2}\nComponent: main\n\n"
        suites = [("now", "Debian", "amd64"), ("now-updates", "Debian", "amd64")]
        suites += [("now-security", "Debian-Security", "amd64"), ("now", "Debian", "i386")]
        return "".join(record.format(*suite) for suite in suites)

    monkeypatch.setattr(build, "run", answer)
    target = build.apt_target(None)
    assert (target["Codename"], target["Architecture"]) == ("now", "amd64")
    with pytest.raises(SystemExit, match="found 0 of: now, now-updates"):
        build.apt_target("then")
