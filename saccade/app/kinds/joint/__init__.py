"""ViLBERT's kinds of work, as the app uses them."""
