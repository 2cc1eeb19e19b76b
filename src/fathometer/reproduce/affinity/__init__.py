"""The paper on the affinity score, figure by figure."""
