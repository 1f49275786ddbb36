"""What a run starts from, and which of its weights learn."""
