"""Classification of images, as the app uses it."""
