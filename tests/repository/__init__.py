"""Rules that the files of this repository keep: layout, pages, stored formats, packages."""
