"""Images from texts, as the app uses it."""
