"""The paper on Leaky ResNets, figure by figure and statement by statement."""
