"""Words that are hidden, as the app uses it."""
