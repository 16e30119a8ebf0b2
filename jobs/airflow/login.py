"""The login of a project's Airflow: one user, with a new password at each start.

The password is in a file that only this operating system user can read: Airflow asks it there, and so do commands that
notify a running Airflow of a new version. Without a login every user of the machine would be its administrator.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from trendlake.pipelines.project.paths import Project

USER = "trendlake"


def passwords_file(project: Project) -> Path:
    """JSON of user and password, as Airflow's simple auth manager reads it."""
    return project.state / "airflow" / "passwords.json"


def new_password(project: Project) -> str:
    """Writes and returns a new password. The next start logs out users who knew the one before."""
    password = secrets.token_urlsafe(16)
    path = passwords_file(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({USER: password}, file)
    fresh.replace(path)
    return password


def password_of(project: Project) -> str:
    """The password of the Airflow that serves the project now. Raises OSError where there is none that this user can
    read."""
    return str(json.loads(passwords_file(project).read_text())[USER])
