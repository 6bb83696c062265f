"""GPyTorch's Gaussian processes for classes and labels, as its documented examples fit them.

"coregionalized" is the variational linear model of coregionalization (its example of SVGP for several tasks:
inducing points, Adam with rate 0.1) with a Bernoulli likelihood per label, or one softmax of classes;
"Dirichlet" is the exact regression on transformed classes (its example of Dirichlet classification).

Usage: ``python -m benchmarks.peers.gpytorch_classes MODEL IN.npz OUT.npz``; IN holds X, y and new, y of shape
(n,) with classes from 0 or (n, L) with 0 and 1; OUT gets probabilities and seconds.
"""

import sys
import time
from typing import Any

import gpytorch
import numpy as np
import torch

_LATENTS, _POINTS, _EPOCHS, _EXACT_EPOCHS, _SAMPLES = 3, 50, 300, 150, 256


class Coregionalized(gpytorch.models.ApproximateGP):
    def __init__(self, points: Any, tasks: int) -> None:
        latents = min(_LATENTS, tasks)
        batch = torch.Size([latents])
        inner = gpytorch.variational.VariationalStrategy(
            self,
            points.repeat(latents, 1, 1),
            gpytorch.variational.CholeskyVariationalDistribution(points.shape[0], batch_shape=batch),
            learn_inducing_locations=True,
        )
        super().__init__(
            gpytorch.variational.LMCVariationalStrategy(
                inner, num_tasks=tasks, num_latents=latents, latent_dim=-1
            )
        )
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch)
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(batch_shape=batch), batch_shape=batch
        )

    def forward(self, x: Any) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x: Any, y: Any, likelihood: Any, classes: int) -> None:
        super().__init__(x, y, likelihood)
        batch = torch.Size([classes])
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch)
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(batch_shape=batch), batch_shape=batch
        )

    forward = Coregionalized.forward


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

    _descend(model, likelihood, loss, _EPOCHS)

    def probabilities(new: Any) -> Any:
        found = likelihood(model(new)).probs
        return found if is_labels else found.mean(0)  # over samples of the scores

    return probabilities


def dirichlet(X: Any, y: Any) -> Any:
    classes = int(y.max()) + 1
    likelihood = gpytorch.likelihoods.DirichletClassificationLikelihood(y, learn_additional_noise=True)
    model = Exact(X, likelihood.transformed_targets, likelihood, classes)
    bound = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    _descend(model, likelihood, lambda: -bound(model(X), likelihood.transformed_targets).sum(), _EXACT_EPOCHS)

    def probabilities(new: Any) -> Any:
        samples = model(new).sample(torch.Size((_SAMPLES,))).exp()
        return (samples / samples.sum(-2, keepdim=True)).mean(0).T

    return probabilities


def _descend(model: Any, likelihood: Any, loss: Any, epochs: int) -> None:
    model.train()
    likelihood.train()
    free = {id(one): one for one in [*model.parameters(), *likelihood.parameters()]}
    adam = torch.optim.Adam(list(free.values()), lr=0.1)
    for _ in range(epochs):
        adam.zero_grad()
        value = loss()
        value.backward()
        adam.step()
    model.eval()
    likelihood.eval()


def main(name: str, given: str, out: str) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with np.load(given) as file:
        X, y, new = (torch.from_numpy(file[key]) for key in ("X", "y", "new"))
    begin = time.process_time()
    found = {"coregionalized": coregionalized, "Dirichlet": dirichlet}[name](X.float(), y)
    fitted = time.process_time()
    with torch.no_grad(), gpytorch.settings.num_likelihood_samples(_SAMPLES):
        probabilities = found(new.float()).double()
    if y.ndim == 1:
        probabilities = probabilities / probabilities.sum(1, keepdim=True)
    seconds = [fitted - begin, time.process_time() - fitted]
    np.savez(out, probabilities=probabilities.numpy(), seconds=np.array(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
