"""What takes both papers: the affinity score inside the bottleneck."""
