"""Captioning, as the app uses it."""
