"""A Cholesky factorisation in tiles, and solves with it.

The factor is kept as blocks of columns whose diagonal tiles are inverted, so a
solve is nothing but matrix products.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from labelweave.array_types import Array
from labelweave.arrays.workers import Workers, panels

__all__ = ["CholeskyFactor"]


_TILE = 256


class CholeskyFactor:
    """The lower triangular C of ``matrix = C C^T``, made in the place of the matrix.

    matrix (n, n): symmetric and positive definite; its lower triangle is overwritten.
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
        below = panels(len(table) - tile.stop, 2 * _TILE)
        below = [slice(part.start + tile.stop, part.stop + tile.stop) for part in below]

        def column(part: slice) -> None:
            table[part, tile] = table[part, tile] @ inverse.T

        def trailing(part: slice) -> None:
            to_the_left = slice(tile.stop, part.stop)
            table[part, to_the_left] -= table[part, tile] @ table[to_the_left, tile].T

        self.workers.each(column, below)
        self.workers.each(trailing, below[::-1])  # the longest first

    def solve(self, right: Array) -> Array:
        """Solve ``matrix @ X = right``.

        right (n, p): the right-hand sides; not changed.
        Shapes: result (n, p).
        """
        solution = right.copy()
        for tile, inverse in zip(self.tiles, self.inverses, strict=True):
            solution[tile] = inverse @ solution[tile]
            self._take_off(solution, tile, slice(tile.stop, len(solution)), transposed=False)
        for tile, inverse in zip(self.tiles[::-1], self.inverses[::-1], strict=True):
            solution[tile] = inverse.T @ solution[tile]
            self._take_off(solution, tile, slice(0, tile.start), transposed=True)
        return solution

    def _take_off(self, solution: Array, tile: slice, others: slice, *, transposed: bool) -> None:
        known, table = solution[tile], self.table

        def one(part: slice) -> None:
            where = slice(part.start + others.start, part.stop + others.start)
            block = table[tile, where].T if transposed else table[where, tile]
            solution[where] -= block @ known

        self.workers.each(one, panels(others.stop - others.start, 4 * _TILE))
