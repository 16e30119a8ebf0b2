"""Keeping published results true to a source that changes: what is published of which version (`coverage`), what has
changed since (`changes`), whom that touches (`affected`), and the difference, in one commit (`difference`). A small
revision is computed where it is asked for (`here`, `differing`), which writes its files too (`rewrite`)."""
