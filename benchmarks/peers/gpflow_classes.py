"""GPflow's sparse variational process for classes and labels, as its documented examples fit it.

The latent functions are a linear coregionalization (its example of several outputs: shared inducing points,
L-BFGS) with a Bernoulli likelihood per label, or the robust maximum of its example of classes.

Arrays: as for :mod:`benchmarks.peers.gpytorch_classes`.
"""

import time

import gpflow
import numpy as np
import tensorflow as tf

from benchmarks.peers.exchange import Arrays, answer

_LATENTS, _POINTS, _STEPS = 3, 50, 1000


@answer
def main(given: Arrays, _: str) -> Arrays:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    random = np.random.default_rng(0)
    X, y, new = (given[key].astype(float) for key in ("X", "y", "new"))
    begin, is_labels = time.process_time(), y.ndim == 2
    tasks = y.shape[1] if is_labels else int(y.max()) + 1
    latents, order = min(_LATENTS, tasks), random.permutation(len(X))[:_POINTS]
    points = gpflow.inducing_variables.InducingPoints(X[order])
    inner = [gpflow.kernels.SquaredExponential() for _ in range(latents)]
    classes = gpflow.likelihoods.MultiClass(tasks, invlink=gpflow.likelihoods.RobustMax(tasks))
    model = gpflow.models.SVGP(
        gpflow.kernels.LinearCoregionalization(inner, W=random.normal(size=(tasks, latents))),
        gpflow.likelihoods.Bernoulli() if is_labels else classes,
        gpflow.inducing_variables.SharedIndependentInducingVariables(points),
        num_latent_gps=latents,
    )
    loss = model.training_loss_closure((X, y if is_labels else y[:, None]))
    gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, options={"maxiter": _STEPS})
    fitted = time.process_time()
    found = model.predict_y(new)[0].numpy()
    if not is_labels:
        found /= found.sum(axis=1, keepdims=True)
    return {"probabilities": found, "seconds": np.array([fitted - begin, time.process_time() - fitted])}
