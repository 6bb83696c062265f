"""The dual variables of a max-margin fit, from which another one goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from labelweave.estimators.seen_rows import carried_columns
from labelweave.estimators.targets import TargetForm
from labelweave.foundation.array_types import Array


@dataclass(frozen=True)
class DualVariables:
    """The dual variables of a fit, for one that begins with them.

    variables (n, L): signed, in float64.
    """

    variables: Array
    C: float
    form: TargetForm

    def spread(self, kept: Array, n_rows: int) -> DualVariables:
        """Say which of more rows these were."""
        variables = np.zeros((n_rows, self.variables.shape[1]))
        variables[kept] = self.variables
        return replace(self, variables=variables)

    def rows(self, which: Array) -> DualVariables:
        """Keep those of some rows."""
        return replace(self, variables=self.variables[which])

    def carried(self, shape: tuple[int, int], form: TargetForm, C: float) -> Array | None:
        """Give the variables of a problem with more rows, more labels or another C; None if labels differ."""
        columns = carried_columns(self.form, form)
        if columns is None or columns.max(initial=-1) >= shape[1] or len(self.variables) > shape[0]:
            return None
        variables, ratio = np.zeros(shape), C / self.C
        if ratio * max(C, self.C) < np.inf:  # no variable is larger; else they are no start
            variables[: len(self.variables), columns] = self.variables * ratio
        return variables
