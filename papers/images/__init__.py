"""Small image classifiers trained on the spot: on CIFAR-10, or on digits where there is no download."""
