"""XML documents: the rules that they keep, the paths that select nodes of them, and their values."""
