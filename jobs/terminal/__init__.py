"""Code that commands share: options, outcome, printed text, JSON, times."""
