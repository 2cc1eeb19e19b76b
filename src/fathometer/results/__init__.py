"""Results and their files: soundings, histories, and how each of them came about."""
