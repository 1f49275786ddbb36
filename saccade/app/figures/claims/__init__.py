"""Each claim of the lectures."""
