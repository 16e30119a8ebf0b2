"""`expect` of pattern files: `evaluate` says what an expectation means, `read` reads what is judged and what it is
compared with, `checks` brings both to a step's record."""
