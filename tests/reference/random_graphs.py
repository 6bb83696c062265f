"""Random directed graphs without cycles, for hypothesis."""

import numpy as np
from hypothesis import strategies as st

from labelweave.labels import Taxonomy


@st.composite
def taxonomies(draw, most=14, most_parents=3):
    """Return each node up to three earlier ones as parents, or none; names and edges are shuffled."""
    size = draw(st.integers(1, most))
    names = draw(st.permutations([f"n{k}" for k in range(size)]))
    above = [
        draw(st.sets(st.integers(0, k - 1), max_size=min(k, most_parents))) if k else set()
        for k in range(size)
    ]
    pairs = [(names[up], names[k]) for k, ups in enumerate(above) for up in ups]
    return Taxonomy(draw(st.permutations(pairs)), nodes=draw(st.permutations(names)))


def random_taxonomy(seed, size, mean_parents=1.5):
    """Make a larger one without hypothesis: node k under a few of those before it."""
    rng = np.random.default_rng(seed)
    pairs = []
    for k in range(1, size):
        count = rng.poisson(mean_parents)
        pairs += [(f"n{up}", f"n{k}") for up in set(rng.integers(0, k, size=count).tolist())]
    return Taxonomy(pairs, nodes=[f"n{k}" for k in range(size)])
