"""A Cholesky factorisation in tiles whose diagonal ones are inverted, so that solves are matrix products."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from labelweave.array_types import Array
from labelweave.arrays.workers import Workers, panels

__all__ = ["CholeskyFactor"]


_TILE = 256


class CholeskyFactor:
    """The lower triangular C of ``matrix = C C^T`` (n, n), which overwrites its lower triangle.

    Raises numpy.linalg.LinAlgError if the matrix is not positive definite.
    """

    def __init__(self, matrix: Array, workers: Workers) -> None:
        self.table, self.workers = matrix, workers
        self.tiles = panels(len(matrix), _TILE)
        self.inverses: list[Array] = []
        for tile in self.tiles:
            self._eliminate(tile)

    def _eliminate(self, tile: slice) -> None:
        """Factorise one block of columns and take its part off the columns to its right."""
        table = self.table
        corner = sl.cholesky(table[tile, tile], lower=True, check_finite=False)
        inverse = sl.solve_triangular(corner, np.eye(len(corner), dtype=table.dtype), lower=True)
        self.inverses.append(inverse)
        below = _panels_from(tile.stop, len(table), 2 * _TILE)

        def column(part: slice) -> None:
            table[part, tile] = table[part, tile] @ inverse.T

        def trailing(part: slice) -> None:
            to_the_left = slice(tile.stop, part.stop)
            table[part, to_the_left] -= table[part, tile] @ table[to_the_left, tile].T

        self.workers.each(column, below)
        self.workers.each(trailing, below[::-1])  # the longest first

    def solve(self, right: Array) -> Array:
        """Solve ``matrix @ X = right`` for (n, p) right-hand sides, which do not change."""
        solution = right.copy()
        for tile, inverse in zip(self.tiles, self.inverses, strict=True):
            solution[tile] = inverse @ solution[tile]
            self._take_off(solution, tile, (tile.stop, len(solution)), transposed=False)
        for tile, inverse in zip(self.tiles[::-1], self.inverses[::-1], strict=True):
            solution[tile] = inverse.T @ solution[tile]
            self._take_off(solution, tile, (0, tile.start), transposed=True)
        return solution

    def _take_off(self, solution: Array, tile: slice, others: tuple[int, int], *, transposed: bool) -> None:
        known, table = solution[tile], self.table

        def one(part: slice) -> None:
            solution[part] -= (table[tile, part].T if transposed else table[part, tile]) @ known

        self.workers.each(one, _panels_from(*others, 4 * _TILE))


def _panels_from(start: int, stop: int, size: int) -> list[slice]:
    return [slice(part.start + start, part.stop + start) for part in panels(stop - start, size)]
