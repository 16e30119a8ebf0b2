"""Running a plan of kind match_recognize."""
