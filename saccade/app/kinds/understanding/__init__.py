"""Understanding of texts, as the app uses it."""
