"""When a pattern runs: a cron expression of five fields, or a name for one, as Airflow's timetables take them."""

from __future__ import annotations

from datetime import UTC, datetime

from croniter import CroniterBadCronError, CroniterBadDateError, croniter

from trendlake.cep_core.errors import TextError, did_you_mean

NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""The schedules that have names in Airflow's `cron_presets` and in croniter."""
_FIELDS = "minute hour day-of-month month day-of-week"
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


def check_schedule(text: str) -> str:
    """`text`, where it says at which moments (UTC) something runs. Raises TextError where it is no cron expression, or
    one of no moment at all, such as the 31st of February."""
    if text.startswith("@"):
        if text not in NAMES:
            raise TextError(f"'{text}' is no schedule", 0, len(text), did_you_mean(text, NAMES))
        return text
    fields = text.split()
    if len(fields) != 5:
        raise TextError(
            f"a schedule has five fields, {_FIELDS}; {len(fields) or 'none'} found",
            0,
            max(1, len(text)),
            'write it as "0 6 * * *" (each day at six, UTC), or as @daily',
        )
    for field in fields:
        if field.upper().startswith("R"):
            # croniter draws these again each time that the file is parsed: no two parsers of Airflow's would agree
            raise TextError(f"'{field}': a random time is no schedule", text.index(field), len(field))
    try:
        croniter(text, _ANY_DAY).get_next(datetime)
    except CroniterBadDateError:
        raise TextError(f"'{text}' is no day of any year", 0, len(text)) from None
    except (CroniterBadCronError, ValueError) as error:
        reason = str(error).removeprefix(f"[{text}] ")
        raise TextError(f"'{text}' is no cron expression: {reason}", 0, len(text), f"the fields: {_FIELDS}") from None
    return text
