"""Images in: where they lie, how they are decoded, kept and varied."""
