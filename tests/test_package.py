from __future__ import annotations

import subprocess
import sys

import pytest

import labelweave
from labelweave import display, kernels


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
