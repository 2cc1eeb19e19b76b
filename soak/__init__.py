"""Programs that try to break fathometer; what they find stands in docs/reliability.md."""
