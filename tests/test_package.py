import ast
import compileall
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import labelweave
from labelweave import display, kernels

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", labelweave.__all__)
def test_everything_that_is_named_is_there(name):
    assert name in dir(labelweave)
    assert getattr(labelweave, name) is not None


def test_kernels_and_pictures_are_modules_of_the_package():
    assert kernels.RBFKernel(0.5).gamma == 0.5
    assert labelweave.kernels is kernels
    assert labelweave.display is display
    assert set(kernels.__all__) <= set(dir(kernels))


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = labelweave.nothing


def test_parts_are_imported_when_they_are_used():
    show = "print('numpy' in sys.modules)"
    script = f"import sys, labelweave; {show}; labelweave.kernels; {show}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_classifiers_are_imported_without_numba_and_without_each_other():
    script = """
import sys, labelweave
labelweave.LowRankClassifier, labelweave.TunedThresholdClassifier
print([name for name in ("numba", "llvmlite", "labelweave.estimators.label_graph") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]"]


@pytest.mark.slow
def test_compiled_files_are_enough(tmp_path):
    package = tmp_path / "labelweave"
    shutil.copytree(ROOT / "src" / "labelweave", package, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(package, legacy=True, quiet=1)
    for source in package.rglob("*.py"):
        source.unlink()
    script = """
import labelweave, numpy as np
X = np.eye(6)[[0, 1, 2, 3, 4, 5] * 4]
print(labelweave.__file__, len([getattr(labelweave, name) for name in labelweave.__all__]))
print(labelweave.MaxMarginClassifier().fit(X, X[:, :2]).predict(X[:2]).tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    found = f"{package / '__init__.pyc'} {len(labelweave.__all__)}"
    assert done.stdout.splitlines() == [found, "[[1, 0], [0, 1]]"]


def test_private_names_of_scikit_learn_are_imported_in_one_place():
    package = Path(labelweave.__file__).parent
    found = [
        f"{path.relative_to(package)}: {node.module}.{alias.name}"
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn")
        for alias in node.names
        if "._" in str(node.module) or alias.name.startswith("_")
    ]
    assert {line.split(":")[0] for line in found} == {"foundation/sklearn_compat.py"}, found


@pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="only where the project's files are")
def test_what_goes_into_an_sdist_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in included if not (ROOT / name).exists()] == []
    assert {"src", "tests", "docs", "examples", "scripts", "LICENSE"} <= set(included)
    needed = next(line for line in project["project"]["dependencies"] if line.startswith("scikit-learn"))
    oldest = re.search(r'"scikit-learn==(\d+\.\d+)\.\*"', (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert oldest is not None
    assert needed == f"scikit-learn>={oldest[1]}"  # which `make oldest` tests
