"""What an automatic model tried, for the page: a bar and a line a member, and one of the combination."""

from __future__ import annotations

from types import SimpleNamespace as Drawn
from typing import Any

from labelweave.app.facts import model_facts

_WIDTH, _BAR, _TOP = 640.0, 22.0, 12.0  # pixels
_LETTER, _LEFT, _WORDS = 11.5, 144.0, 200.0  # room for names, and for words beside bars, on phones too


def tried_members(classifier: Any) -> Drawn | None:
    """Say what a model tried, with the bars of its picture; None where it is no combination of models."""
    found = model_facts(classifier).combination
    if found is None:
        return None
    losses = [*(one["left_out_loss"] for one in found.members), found.loss]
    left = max(_LEFT, 16 + _LETTER * max(len(one["name"]) for one in found.members))
    scale = (_WIDTH - left - _WORDS) / max(*losses, 1e-9)
    names = [*(one["name"] for one in found.members), "combination"]
    words = [*(f"weight {one['weight']:.2f}" for one in found.members), ""]
    kinds = [*("for" if one["weight"] > 0 else "unused" for one in found.members), "against"]
    bars = [
        Drawn(
            y=_TOP + place * _BAR, width=round(loss * scale, 1), name=name, loss=loss, words=said, kind=kind
        )
        for place, (name, loss, said, kind) in enumerate(zip(names, losses, words, kinds, strict=True))
    ]
    size = {"width": _WIDTH, "height": 2 * _TOP + len(bars) * _BAR, "left": left, "bar": _BAR}
    return Drawn(bars=bars, facts=found, **size)
