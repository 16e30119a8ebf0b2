"""Kind match_recognize: row patterns of SQL:2016, feature R010."""
