"""Detection, as the app uses it."""
