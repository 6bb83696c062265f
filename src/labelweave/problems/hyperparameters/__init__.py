"""Learning the parameters of kernels and label covariances from the cross-validated likelihood."""
