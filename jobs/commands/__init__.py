"""The commands' options and help; the work is in `jobs.actions`."""
