"""Run the tests as on other machines.

    python -m attacks.portable                 # everything, about five minutes per line on two cores
    python -m attacks.portable --short         # a few lines, as .ci/run does: the numerical folders, with
                                               # other code of OpenBLAS, and with unusual folder names
    python -m attacks.portable --only Haswell "four threads" -- tests/solvers

Each line is a run of the fast tests on a copy of the work tree.  OpenBLAS, NumPy and Numba choose their code
by the processor; environment variables select that of another one.  What cannot run here is omitted and
listed: kernels that the processor lacks, versions of Python that are not installed.

"sums by shape" needs no other processor: it loads ``attacks/sums_by_shape.c`` before OpenBLAS, so that the
order of summation in small products depends on shapes and layouts, as on processors with AVX-512.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scipy.linalg  # noqa: F401  loads its library
from benchmarks.frame import command, flag, several, without_name
from benchmarks.programs import threads
from threadpoolctl import threadpool_info

from attacks.processors import numpy_features

ROOT = Path(__file__).parents[1]
FOLDERS = "labelweave", "zwei Wörter é"
OLD_KERNEL, NEW_KERNEL = "Sandybridge", "SkylakeX"
NUMERICAL = [
    f"tests/{name}"
    for name in (
        "arrays", "contracts", "dask/test_kernels.py", "features",
        "hyperparameters", "loops", "losses", "metrics", "model_files", "postprocessing", "problems",
        "reductions", "solvers",
    )
]  # fmt: skip
NAMED = ["tests/attacks", "tests/app/cli", "tests/test_structure.py", "tests/test_package.py"]


@dataclass(frozen=True)
class Machine:
    """The differences from this machine.

    folder: the name of the copy.
    variables: of the environment.
    arguments: of pytest.
    prepare: runs in the process before it becomes pytest.
    python: a program; None for this one.
    """

    folder: str = FOLDERS[0]
    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None
    python: str | None = None


class CannotRunError(Exception):
    """The reason why a line is omitted."""


def _kernel(name: str) -> Machine:
    """Return OpenBLAS with the code of a processor, if that runs here."""
    variables = {"OPENBLAS_CORETYPE": name}
    product = "import numpy as np; A = np.ones((300, 200)); A @ A.T; A[:9] @ A[:9].T"
    if not _succeeds(product, env=os.environ | variables):
        raise CannotRunError(f"this processor lacks what OpenBLAS's code for {name} needs")
    return Machine(variables=variables)


def _sums_by_shape(within: Path) -> Machine:
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        raise CannotRunError("it needs Linux and a C compiler, cc")
    paths = [part["filepath"] for part in threadpool_info() if part["user_api"] == "blas"]
    of = {name: [path for path in paths if f"{name}.libs" in path] for name in ("numpy", "scipy")}
    if not all(len(found) == 1 for found in of.values()):
        raise CannotRunError("NumPy and SciPy have no OpenBLAS of their own here")
    made = within / "sums_by_shape.so"
    source = ROOT / "attacks" / "sums_by_shape.c"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    libraries = {f"BLAS_OF_{name.upper()}": found[0] for name, found in of.items()}
    return Machine(variables={"LD_PRELOAD": str(made), **libraries})


def _one_core() -> Machine:
    core = min(os.sched_getaffinity(0))
    return Machine(arguments=("-n", "1"), prepare=lambda: os.sched_setaffinity(0, {core}))


def _another_user() -> Machine:
    if os.getuid():
        raise CannotRunError("only root can become another user")

    def become() -> None:
        os.umask(0o077)
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)

    if not _succeeds("import labelweave", preexec_fn=become):
        raise CannotRunError("Python or labelweave lies where only root may read")
    return Machine(variables={"HOME": "/nonexistent", "USER": "nobody"}, prepare=become)


def _succeeds(code: str, python: str = sys.executable, **options: Any) -> bool:
    try:
        done = subprocess.run([python, "-c", code], check=False, capture_output=True, **options)
    except OSError:
        return False
    return done.returncode == 0


def _python(version: str) -> Machine:
    installed = Path.home().glob(f".pyenv/versions/{version}.*/bin/python")
    programs = filter(None, [shutil.which(f"python{version}"), *map(str, installed)])
    program = next((one for one in programs if _succeeds("", one)), None)  # a shim may have none
    if program is None:
        raise CannotRunError(f"there is no python{version} here")
    return Machine(python=program)


_NOBODY = 65534
MACHINES: dict[str, Callable[[Path], Machine]] = {
    "as it is": lambda _: Machine(),
    "blank and accent": lambda _: Machine(FOLDERS[1]),
    **{
        name: lambda _, name=name: _kernel(name)
        for name in ("Prescott", OLD_KERNEL, "Haswell", NEW_KERNEL, "Zen")
    },
    "sums by shape": _sums_by_shape,
    "NumPy without vector code": lambda _: Machine(variables={"NPY_DISABLE_CPU_FEATURES": numpy_features(0)}),
    "Numba for any processor": lambda _: Machine(variables={"NUMBA_CPU_NAME": "generic"}),
    "one core": lambda _: _one_core(),
    "four threads": lambda _: Machine(variables=threads(4)),
    "C, Kathmandu": lambda _: Machine(variables={"LANG": "C", "LC_ALL": "C", "TZ": "Asia/Kathmandu"}),
    "another user": lambda _: _another_user(),
    "backwards": lambda _: Machine(arguments=("--backwards",)),
    **{
        f"Python {version}": lambda _, version=version: _python(version)
        for version in ("3.11", "3.12", "3.13", "3.14")
    },
}
SHORT = {"as it is": NAMED, **dict.fromkeys((OLD_KERNEL, NEW_KERNEL, "sums by shape"), NUMERICAL)}


def _copy(folder: Path) -> None:
    """Copy the tracked and untracked files and the compiled loops, and link the real data next to it."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    compiled = (path.relative_to(ROOT) for path in (ROOT / "src").rglob("*.nb[ic]"))
    for name in (*filter(None, names), *compiled):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    shared = ROOT.parent / "shared"
    if shared.exists() and not (folder.parent / "shared").exists():
        (folder.parent / "shared").symlink_to(shared)


def _interpreter(machine: Machine, folder: Path) -> list[str]:
    """Return the Python that runs the tests: this one, or another version's with the packages that tests
    need.
    """
    if machine.python is None:
        return [sys.executable]
    made = folder.parent / Path(machine.python).resolve().name
    subprocess.run([machine.python, "-m", "venv", made], check=True)
    pip = [made / "bin" / "python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    subprocess.run([*pip, "--editable", ".[all]", "--group", "dev"], check=True, cwd=folder)
    return [str(made / "bin" / "python")]


def run(name: str, tests: list[str], within: Path) -> bool:
    """Run tests on a machine; print the outcome, and return whether all passed."""
    start = time.monotonic()
    try:
        machine = MACHINES[name](within)
    except CannotRunError as error:
        print(f"{name}: not run, {error}.", flush=True)
        return True
    folder = within / machine.folder
    if not folder.exists():
        _copy(folder)
    words = ["-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
    command = [*_interpreter(machine, folder), *words, "-m", "not slow and not search"]
    command += [*machine.arguments, *tests]
    if name == "another user":
        subprocess.run(["chown", "-R", str(_NOBODY), within], check=True)
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder / "src")} | dict(machine.variables),
        preexec_fn=machine.prepare, check=False, capture_output=True, text=True,
    )  # fmt: skip
    lines = done.stdout.strip().splitlines() or [done.stderr]
    said = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    taken = f"{time.monotonic() - start:.0f} s"
    print(f"{name}: {lines[-1].strip('= ')} ({taken})", *said, sep="\n  ", flush=True)
    if done.returncode and not said:
        print(done.stdout[-3000:], done.stderr[-3000:], flush=True)
    return done.returncode == 0


@command(
    only=several(MACHINES),
    short=flag(False, "a few lines, and of each some folders"),
    tests=without_name([], "folders and files of tests, after --; by default all"),
)
def main(chosen: Any) -> None:
    wanted = SHORT if chosen.short else dict.fromkeys(chosen.only, chosen.tests)
    with tempfile.TemporaryDirectory(prefix="portable") as within:
        passed = [run(name, tests, Path(within)) for name, tests in wanted.items()]
    raise SystemExit(not all(passed))
