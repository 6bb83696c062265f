"""A quadratic objective of a factor by dense matrices, in blocks, as conjugate gradients see it."""

from types import SimpleNamespace

import numpy as np

from labelweave.foundation.arrays import Workers


class QuadraticTwin:
    """``sum over blocks of 1/2 <f, H f> - <b, f>``, with a matrix H of its own for every block.

    The image of a factor is a multiple of it, and its curvature is computed from the image alone.
    """

    is_quadratic = True
    workers = Workers(1)
    scale = 3.0

    def __init__(self, blocks, hessians, right):
        self.blocks, self.hessians, self.right = blocks, hessians, right

    def image(self, factor):
        return self.scale * factor

    def steering(self, gradient):
        return gradient

    def inner(self, left, right, image):
        products = left * right
        if self.blocks == "rows":
            return products.sum(axis=1, keepdims=True)
        if self.blocks == "columns":
            return products.sum(axis=0, keepdims=True)
        return products.sum(keepdims=True)

    def vectors(self, factor):
        """One vector per block."""
        return {"rows": factor, "columns": factor.T, "whole": factor.reshape(1, -1)}[self.blocks]

    def factor(self, vectors):
        """Back from one vector per block."""
        return {
            "rows": vectors,
            "columns": np.transpose(vectors),
            "whole": np.reshape(vectors, self.right.shape),
        }[self.blocks]

    def curve(self, image):
        vectors = self.vectors(image / self.scale)
        return self.factor(np.array([H @ v for H, v in zip(self.hessians, vectors, strict=True)]))

    def solution(self, weights=None):
        """The minimum, by dense solves."""
        right = self.vectors(self.right)
        return self.factor(
            np.array([np.linalg.solve(H, b) for H, b in zip(self.hessians, right, strict=True)])
        )

    def values(self, factor, image):
        return 0.5 * self.inner(factor, self.curve(image), None) - self.inner(factor, self.right, None)

    def evaluate(self, factor, image):
        diagonal = self.factor(np.array([np.diag(H) for H in self.hessians]))
        return SimpleNamespace(
            values=self.values(factor, image),
            gradient=self.curve(image) - self.right,
            curve=lambda direction, along: self.curve(along),
            precondition=lambda residual: residual / diagonal,
        )
