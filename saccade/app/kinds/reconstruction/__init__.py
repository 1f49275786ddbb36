"""Images as codes and back, as the app uses it."""
