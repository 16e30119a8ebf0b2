"""Running a plan of kind xml_join over a table of documents."""
