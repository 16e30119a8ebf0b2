"""What commands share: options, outcome, printed text, JSON, times."""
