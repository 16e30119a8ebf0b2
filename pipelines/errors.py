"""The mistakes a user, or the data, can make on the way through Spark and Delta: one class each, with a stable code."""

from __future__ import annotations

from trendlake.cep_core.errors import PatternErrors, TrendlakeError


class ContractErrors(PatternErrors):
    """All the mistakes of one data contract, together."""

    code = "CONTRACT"


class ContractRuleError(TrendlakeError):
    """A rule of a contract that Trendlake cannot run, or that Spark refuses."""

    code = "CONTRACT_RULE"


class SourceSchemaError(TrendlakeError):
    """A table does not have the columns or types its contract promises."""

    code = "SOURCE_SCHEMA"


class SourceMissingError(TrendlakeError):
    """The source table does not exist yet."""

    code = "SOURCE_MISSING"


class NotOursError(TrendlakeError):
    """A table that other programs write, which Trendlake reads and never changes."""

    code = "NOT_OURS"


class SourceFileError(TrendlakeError):
    """A file of events that cannot be read, or does not have the columns and types its contract promises."""

    code = "SOURCE_FILE"


class DeliveryError(TrendlakeError):
    """A delivery that would change rows which its contract does not let it change, or that contradicts itself."""

    code = "DELIVERY"


class ToleranceError(TrendlakeError):
    """More rows break the contract than it tolerates: the run stops before it computes."""

    code = "TOLERANCE"


class TooMuchError(TrendlakeError):
    """A revision would compute more windows than the pattern allows changes of a reference table to touch."""

    code = "TOO_MUCH"


class ChecksFailedError(TrendlakeError):
    """Staged results break the results contract: they are not published."""

    code = "CHECKS_FAILED"


class StagedLostError(TrendlakeError):
    """Rows that a step staged are not all there any more: nothing is published."""

    code = "STAGED_LOST"


class RoadClosedError(TrendlakeError):
    """A step that was asked for in this process, and that only Spark can do."""

    code = "ROAD_CLOSED"


class ShardTooLargeError(TrendlakeError):
    """One key's events of one window are more than a worker may hold."""

    code = "SHARD_TOO_LARGE"


class OtherwiseWrittenError(TrendlakeError):
    """A file of a table that only Spark's own reader reads as it is meant."""

    code = "OTHERWISE_WRITTEN"


class SampleTooLargeError(TrendlakeError):
    """The windows to try a pattern on hold more events than were asked for: a part of a window is no sample."""

    code = "SAMPLE_TOO_LARGE"


class RepairError(TrendlakeError):
    """Repaired rows that cannot be put back: they replace no quarantined row, or break the contract still."""

    code = "REPAIR"


class ResultsTypeError(TrendlakeError):
    """A column of the results table has another type than the pattern gives it: values are never cast."""

    code = "RESULTS_TYPE"


class StepOrderError(TrendlakeError):
    """The step before has not succeeded for that run, or its record is based on something else than this step is."""

    code = "STEP_ORDER"


class UpstreamFailedError(TrendlakeError):
    """A run that did not begin, because the run of the pattern whose results it reads has failed."""

    code = "UPSTREAM_FAILED"


class StalePlanError(TrendlakeError):
    """A pattern, its contracts or its results have changed since the plan that is to be applied was made."""

    code = "STALE_PLAN"


class StaleRunError(TrendlakeError):
    """A newer version of the source has been published for these windows: this run's results are older."""

    code = "STALE_RUN"


class ProfileError(TrendlakeError):
    """A profile is missing or says something it may not."""

    code = "PROFILE"


class UnsafeStoreError(TrendlakeError):
    """A warehouse in a store where two processes may commit one version of a table: it is not written."""

    code = "UNSAFE_STORE"


class SessionError(TrendlakeError):
    """A session of Spark that a project cannot use."""

    code = "SESSION"


class NeedsSparkError(TrendlakeError):
    """Rows that only Spark reads, where none has started and none is started for a question."""

    code = "NEEDS_SPARK"


class JarsMissingError(TrendlakeError):
    """Delta's jars are not where the session looks for them."""

    code = "JARS_MISSING"


class JavaMissingError(TrendlakeError):
    """There is no Java to run Spark on, or one that cannot."""

    code = "JAVA_MISSING"


class NotInstalledError(TrendlakeError):
    """The command needs packages that are not installed."""

    code = "NOT_INSTALLED"


class ProjectError(TrendlakeError):
    """There is no project, pattern or contract of that name."""

    code = "PROJECT"


class OtherFormError(ProjectError):
    """The published results are of an earlier form of the pattern, without columns that it has now."""


class CycleError(ProjectError):
    """Patterns read each other's results in a circle."""

    code = "CYCLE"


class BadTimeError(TrendlakeError):
    """A time or interval on the command line that is none."""

    code = "BAD_TIME"


class BadNumberError(TrendlakeError):
    """A number on the command line that is none, or out of range."""

    code = "BAD_NUMBER"


class BusyTableError(TrendlakeError):
    """Other writers changed the table at every attempt."""

    code = "BUSY_TABLE"


class DiskFullError(TrendlakeError):
    """There is no room left on a disk that a command writes to."""

    code = "DISK_FULL"


class NotWritableError(TrendlakeError):
    """A disk or folder that this user may not write to, or not read."""

    code = "NOT_WRITABLE"


class OutOfMemoryError(TrendlakeError):
    """A worker or the driver needs more memory than it may have, or was ended from outside."""

    code = "OUT_OF_MEMORY"


class FileMissingError(TrendlakeError):
    """A file that a version of a table consists of is gone: removed by VACUUM or by hand."""

    code = "FILE_MISSING"


class FileDamagedError(TrendlakeError):
    """A file of a table, or of its log, is not whole."""

    code = "FILE_DAMAGED"


class RecordDamagedError(TrendlakeError):
    """A run record whose values no version of Trendlake has written."""

    code = "RECORD_DAMAGED"


class NotHereError(Exception):
    """This process cannot do the work as Spark does it, with the same result: the caller asks Spark. The message says
    why. No user sees it."""


PASSING = (BusyTableError.code, DiskFullError.code, OutOfMemoryError.code, FileMissingError.code)
"""Codes of errors that another attempt may not meet: the cause may be gone by then."""
