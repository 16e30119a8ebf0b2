"""From a pattern file of kind xml_join to its plan."""
