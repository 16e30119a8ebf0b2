"""The effect of the project's files, as they are now, on published results, before anything is computed."""
