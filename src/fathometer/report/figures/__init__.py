"""Publication figures of result objects, by matplotlib."""
