"""Texts as tokens."""
