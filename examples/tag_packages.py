"""Tags for Debian packages
========================

Learn Debian's package tags and suggest some for packages that have none.

Run ``python examples/tag_packages.py``; it takes a few seconds.
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/tag_packages.png'
from __future__ import annotations

import time

from labelweave import MaxMarginClassifier, datasets, metrics

SHOWN_PACKAGES = 6
TAGS_EACH = 4


def main() -> None:
    """Fit, print the certificate, score the test packages, and tag a few untagged ones."""
    data = datasets.load_debtags()
    print(f"{data.X.shape[0]} tagged packages, {data.X.shape[1]} features, {data.Y.shape[1]} tags")

    start = time.perf_counter()
    model = MaxMarginClassifier(C=0.5).fit(data.X, data.Y)
    seconds = time.perf_counter() - start
    print(f"Fitted in {seconds:.1f} s (the first fit on a machine compiles and takes longer).")
    gap = 100 * model.duality_gap_
    print(f"After {model.n_iter_} rounds the objective is within {gap:.2f} % of its optimum.")

    scores = model.decision_function(data.X_test)
    print(f"On {len(scores)} packages that it has not seen:")
    print(f"  micro-averaged F1    {metrics.f1_score(data.Y_test, scores > 0, average='micro'):.3f}")
    print(f"  precision of top 3   {metrics.precision_at_k(data.Y_test, scores, k=3):.3f}")

    print("Tags suggested for packages without any:")
    labels, _ = model.predict_top(data.X_untagged[:SHOWN_PACKAGES], k=TAGS_EACH)
    for row in range(SHOWN_PACKAGES):
        tags = ", ".join(data.label_names[labels[row]])
        print(f"  {data.names_untagged[row]} ({data.descriptions_untagged[row]}): {tags}")


if __name__ == "__main__":
    main()
