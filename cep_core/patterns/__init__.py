"""What patterns of every kind share: their model, their names and types, what is expected of their results."""
