"""GPyTorch's Gaussian processes for classes and labels, as its documented examples fit them.

It is the variational linear model of coregionalization (its example of SVGP for several tasks: inducing
points, Adam with rate 0.1) with a Bernoulli likelihood per label, or one softmax of classes.

Given are X, y and new, y of shape (n,) with classes from 0 or (n, L) with 0 and 1; the answer has
probabilities and seconds.
"""

import time
from typing import Any

import gpytorch
import numpy as np
import torch

from benchmarks.peers.exchange import Arrays, answer

_LATENTS, _POINTS, _EPOCHS, _SAMPLES = 3, 50, 300, 256


class Coregionalized(gpytorch.models.ApproximateGP):
    def __init__(self, points: Any, tasks: int) -> None:
        latents, kinds = min(_LATENTS, tasks), gpytorch.variational
        batch = torch.Size([latents])
        own = kinds.CholeskyVariationalDistribution(points.shape[0], batch_shape=batch)
        points = points.repeat(latents, 1, 1)
        inner = kinds.VariationalStrategy(self, points, own, learn_inducing_locations=True)
        many = {"num_tasks": tasks, "num_latents": latents, "latent_dim": -1}
        super().__init__(kinds.LMCVariationalStrategy(inner, **many))
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch)
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(batch_shape=batch), batch_shape=batch
        )

    def forward(self, x: Any) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def coregionalized(X: Any, y: Any) -> Any:
    """Fit, and give a function of new rows to probabilities."""
    is_labels = y.ndim == 2
    tasks = y.shape[1] if is_labels else int(y.max()) + 1
    order = torch.randperm(len(X))[: min(_POINTS, len(X))]
    model = Coregionalized(X[order], tasks)
    likelihood: Any = gpytorch.likelihoods.BernoulliLikelihood()
    if not is_labels:
        likelihood = gpytorch.likelihoods.SoftmaxLikelihood(
            num_features=tasks, num_classes=tasks, mixing_weights=False
        )
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))

    def loss() -> Any:
        if not is_labels:
            return -bound(model(X), y)
        # its bound has the divergence once per row where a likelihood is of several entries of a row
        fitted = likelihood.expected_log_prob(y.to(X.dtype), model(X)).sum()
        return (model.variational_strategy.kl_divergence().sum() - fitted) / len(X)

    model.train()
    likelihood.train()
    free = {id(one): one for one in [*model.parameters(), *likelihood.parameters()]}
    adam = torch.optim.Adam(list(free.values()), lr=0.1)
    for _ in range(_EPOCHS):
        adam.zero_grad()
        loss().backward()
        adam.step()
    model.eval()
    likelihood.eval()

    def probabilities(new: Any) -> Any:
        found = likelihood(model(new)).probs
        return found if is_labels else found.mean(0)  # over samples of the scores

    return probabilities


@answer
def main(given: Arrays, _: str) -> Arrays:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    X, y, new = (torch.from_numpy(given[key]) for key in ("X", "y", "new"))
    begin = time.process_time()
    found = coregionalized(X.float(), y)
    fitted = time.process_time()
    with torch.no_grad(), gpytorch.settings.num_likelihood_samples(_SAMPLES):
        probabilities = found(new.float()).double()
    if y.ndim == 1:
        probabilities = probabilities / probabilities.sum(1, keepdim=True)
    seconds = [fitted - begin, time.process_time() - fitted]
    return {"probabilities": probabilities.numpy(), "seconds": np.array(seconds)}
