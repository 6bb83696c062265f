"""Make ``.venv-peers``, the environment of the other programs of the benchmarks.

It is in the repository's root and has LIBLINEAR, LIBSVM, PECOS, Omikuji, napkinXC, iterative-stratification,
PyMaxflow, cleanlab and Snap ML. Run ``python benchmarks/peers/make_environment.py`` with Python 3.11 on
x86-64 Linux, where it was tested. libpecos is a wheel with its own OpenMP that needs no BLAS, Omikuji one
that needs cffi. liblinear-official and libsvm-official are source packages that need a C++ compiler; they are
compiled for this machine's processor, which favors them.

libpecos is installed without its dependencies: the linear trainer imports none of torch, transformers and the
like, and it requires numpy below 2 and scipy below 1.14, which is why it has a separate environment.
"""

import os
import subprocess
import venv
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-peers"
_BASE = ["numpy==1.26.4", "scipy==1.13.1", "scikit-learn==1.5.2", "setuptools", "wheel"]
_COMPILED_HERE = ["liblinear-official==2.50.0", "libsvm-official==3.37.0"]
_WHEELS = [
    "omikuji==0.5.2",
    "cffi==2.1.1",
    "napkinxc==0.7.2",
    "iterative-stratification==0.1.9",
    "PyMaxflow==1.3.2",
    "cleanlab==2.9.0",
    "snapml==1.17.2",
    "pandas<3",  # that of cleanlab, with numpy below 2
]
_WITHOUT_DEPENDENCIES = ["libpecos==1.2.8"]
_CHECK = (
    "import cleanlab, iterstrat.ml_stratifiers, liblinear.liblinear, libsvm.svm, maxflow, omikuji, "
    "pecos.xmc, snapml"
)


def main() -> None:
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    _install(_BASE)
    _install(["--no-cache-dir", *_COMPILED_HERE])
    _install([*_BASE, *_WHEELS])  # whose dependencies must not change these versions
    _install(["--no-deps", *_WITHOUT_DEPENDENCIES])
    subprocess.run([ENVIRONMENT / "bin" / "python", "-c", _CHECK], check=True, cwd=ENVIRONMENT)
    print(f"The peers' environment is ready in {ENVIRONMENT.name}.")


def _install(arguments: list[str]) -> None:
    flags = {**os.environ, "CFLAGS": "-O3 -march=native"}
    python = str(ENVIRONMENT / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True, env=flags)


if __name__ == "__main__":
    main()
