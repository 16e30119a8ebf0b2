"""The code of commands. A module is imported when its command runs, so that help and completion stay quick."""
