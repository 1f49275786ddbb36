"""Rows of data, and how they become batches."""
