"""From the text of a row pattern to its plan."""
