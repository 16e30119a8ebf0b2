"""Kind xml_join: pairs of XML documents that hold equal values (Hong 2009, chapter 6: XSCL and MMQJP)."""
