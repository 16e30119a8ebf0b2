"""The main job on real input."""
