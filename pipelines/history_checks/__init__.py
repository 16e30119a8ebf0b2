"""Whether results go on as a person expects of them (`expect` in a pattern file): `judgement` says what that means,
`cells` reads what is judged and what it is compared with, `verdicts` brings both to a step's record."""
