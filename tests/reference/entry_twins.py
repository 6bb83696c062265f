"""Losses of single entries and of whole label matrices, computed densely."""

import numpy as np


def squared(sign, score):
    return 0.5 * (score - max(sign, 0)) ** 2


def logistic(sign, score):
    return np.log1p(np.exp(-sign * score))


def squared_hinge(sign, score):
    return 0.5 * max(0.0, 1 - sign * score) ** 2


LOSSES = {"squared_error": squared, "log_loss": logistic, "squared_hinge": squared_hinge}


class EntriesTwin:
    """The loss of a matrix of signs (0: unobserved) and weights, entry by entry."""

    def __init__(self, loss, signs, weights):
        self.loss, self.signs, self.weights = loss, signs, weights * (signs != 0)

    @property
    def transposed(self):
        return EntriesTwin(self.loss, self.signs.T, self.weights.T)

    def values(self, image, fixed):
        losses = np.vectorize(LOSSES[self.loss])(self.signs, image @ fixed.T)
        return (self.weights * losses).sum(axis=1)

    def gradients(self, image, fixed):
        """D of equation 9."""
        signs, scores = self.signs, image @ fixed.T
        if self.loss == "log_loss":
            return self.weights * -signs / (1 + np.exp(signs * scores))
        short = -signs * np.maximum(0, 1 - signs * scores)
        return self.weights * (scores - (signs > 0) if self.loss == "squared_error" else short)

    def curvatures(self, image, fixed):
        signs, scores = self.signs, image @ fixed.T
        if self.loss == "squared_error":
            return self.weights * np.ones_like(scores)
        if self.loss == "log_loss":
            share = 1 / (1 + np.exp(-scores))
            return self.weights * share * (1 - share)
        return self.weights * (signs * scores < 1)

    def conjugate(self, image, fixed, share):
        """The sum of conjugates of ``w loss`` at a share of the gradients, by where each maximum is."""
        gradients, total = self.gradients(image, fixed), 0.0
        for place in np.ndindex(self.signs.shape):
            sign, weight = self.signs[place], self.weights[place]
            if weight == 0:
                continue
            gradient = share * gradients[place] / weight
            if self.loss == "squared_error":
                best = gradient + max(sign, 0)
            elif self.loss == "log_loss":
                share_of = np.clip(-sign * gradient, 1e-300, 1 - 1e-16)
                best = -sign * np.log(share_of / (1 - share_of))
            else:
                best = sign * (1 + sign * gradient)
            total += weight * (gradient * best - LOSSES[self.loss](sign, best))
        return total
