"""Translation, as the app uses it."""
