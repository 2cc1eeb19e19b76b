"""Pictures of results. Reads result objects, never models."""
