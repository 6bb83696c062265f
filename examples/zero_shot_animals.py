"""Animals without training images
===============================

Classify images of animals that have no training images.

Every animal is described by a signature, its attributes such as "striped" or "swims".  Thirty animals have
images; ten others are known only by their signatures and frequencies.  The images are synthetic: each
attribute changes the features, with a strength that varies between images, and noise is added.

The attributes of the ten animals are predicted in three ways: by the majority value in the ten signatures,
without the image; by independent max-margin classifiers; and by M3L, whose prior couples attributes by their
correlations in the ten signatures.  Then the animal is predicted by direct attribute prediction from either
set of scores, which also improves the attributes.  Run ``python examples/zero_shot_animals.py``; it takes a
few seconds.
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/zero_shot_animals.png'
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave import LabelCovariance, MaxMarginClassifier, ZeroShotClassifier

SEEN, UNSEEN, ATTRIBUTES, FEATURES = 30, 10, 24, 40
TRAINING_IMAGES, TEST_IMAGES = 240, 1_000
NOISE = 7.0
ZOOS = 5
WAYS = (
    "most frequent, without looking",
    "independent",
    "independent, then the animal",
    "M3L",
    "M3L, then the animal",
)


@dataclass(frozen=True)
class Zoo:
    """Images with the numbers of their animals, and all signatures (0/1), seen animals first."""

    X: Any
    animals: Any
    X_test: Any
    animals_test: Any
    signatures: Any
    shares: Any


def main() -> None:
    """Compare the methods on a few data sets and print averages."""
    figures = np.mean([compare(make_zoo(random_state)) for random_state in range(ZOOS)], axis=0)
    print(
        f"{TRAINING_IMAGES} images of {SEEN} animals to learn from, {TEST_IMAGES} of {UNSEEN} others to "
        f"name, {ATTRIBUTES} attributes; averages over {ZOOS} zoos"
    )
    print(f"{'':38s}{'wrong attributes':>18s}{'right animals':>16s}")
    for way, (wrong, right) in zip(WAYS, figures, strict=True):
        print(f"{way:38s}{wrong:16.1f} %" + ("" if np.isnan(right) else f"{right:14.1f} %"))


def compare(zoo: Zoo) -> list[tuple[float, float]]:
    """Compute the shares of wrong attributes and right animals, in the order of ``WAYS``.

    Parameters
    ----------
    zoo : Zoo
        The images.

    Returns
    -------
    list of (float, float)
        Percent; NaN where a way names no animal.
    """
    Y, unseen, truth = zoo.signatures[zoo.animals], zoo.signatures[SEEN:], zoo.signatures[zoo.animals_test]
    most_frequent = int(zoo.shares.argmax())
    majority = (zoo.shares @ unseen > 0.5).astype(int)
    figures = [(_wrong(majority, truth), 100 * float((zoo.animals_test == SEEN + most_frequent).mean()))]
    prior = LabelCovariance.from_signatures(unseen, zoo.shares)
    for covariance in (None, prior):
        classifier = MaxMarginClassifier(C=0.001, label_covariance=covariance)
        figures.append((_wrong(classifier.fit(zoo.X, Y).predict(zoo.X_test), truth), np.nan))
        model = ZeroShotClassifier(
            classifier, unseen, class_prior=zoo.shares, couple_attributes=covariance is not None
        ).fit(zoo.X, Y, groups=zoo.animals)
        attributes = model.predict_attributes(zoo.X_test)
        figures.append((_wrong(attributes, truth), 100 * model.score(zoo.X_test, zoo.animals_test - SEEN)))
    return figures


def make_zoo(random_state: int) -> Zoo:
    """Draw signatures in a few kinds of animals, and images of their attributes.

    Parameters
    ----------
    random_state : int
        Fixes the draw.

    Returns
    -------
    Zoo
        The images.
    """
    rng = np.random.default_rng(random_state)
    kinds = rng.random((6, ATTRIBUTES)) < 0.4  # fish, birds, ...: attributes that co-occur
    kind = np.concatenate([rng.integers(0, 5, SEEN), rng.integers(3, 6, UNSEEN)])
    signatures = (kinds[kind] ^ (rng.random((SEEN + UNSEEN, ATTRIBUTES)) < 0.15)).astype(int)
    shares = rng.dirichlet(np.full(UNSEEN, 3.0))
    animals = rng.integers(0, SEEN, TRAINING_IMAGES)
    animals_test = SEEN + rng.choice(UNSEEN, TEST_IMAGES, p=shares)
    traces = rng.normal(size=(ATTRIBUTES, FEATURES))

    def draw_images(which: Any) -> Any:
        visible = rng.random((len(which), ATTRIBUTES)) < 0.8
        shown = (2 * signatures[which] - 1) * visible
        return (shown @ traces + NOISE * rng.normal(size=(len(which), FEATURES))) / np.sqrt(FEATURES)

    return Zoo(draw_images(animals), animals, draw_images(animals_test), animals_test, signatures, shares)


def _wrong(predicted: Any, truth: Any) -> float:
    return 100 * float((predicted != truth).mean())


if __name__ == "__main__":
    main()
