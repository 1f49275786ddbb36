"""Language models, as the app uses them."""
