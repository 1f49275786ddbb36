"""The machine that a run is trained on: its devices, memory, processes and threads."""
