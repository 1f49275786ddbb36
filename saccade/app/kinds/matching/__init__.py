"""Images and texts that fit one another, as the app uses it."""
