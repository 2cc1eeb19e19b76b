"""Every gauge: through all checks on a CPU and on a GPU, and over random pairs."""
