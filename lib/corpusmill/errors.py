"""Every error that a user can cause, with its code and its sentence.

A user-facing error is one line: what is wrong, where, and what is allowed. The
code stays the same when the wording changes, so that scripts and runbooks can
refer to it. ``exit_status`` is what a job ends with: 2 for bad usage or conf,
1 for anything else.
"""

from __future__ import annotations


class CorpusmillError(Exception):
    """An error that the user can mend; its text is one line.

    Parameters
    ----------
    code
        A key of `MESSAGES`.
    **details
        The values for the placeholders of that message.
    """

    exit_status = 1

    def __init__(self, code: str, **details: object) -> None:
        self.code = code
        self.details = details
        text = MESSAGES[code].format(**details)
        super().__init__(f"{code}: {' '.join(text.split())}")

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel from Spark's workers to the driver; the default would drop the keywords.
        return _rebuild, (type(self), self.code, self.details)


class UsageError(CorpusmillError):
    """Bad usage or a bad conf: exit status 2."""

    exit_status = 2


class DataError(CorpusmillError):
    """Input data that cannot be used."""


class SchemaError(DataError):
    """A DataFrame without a column that is needed, or with one of another type."""


class ModelError(CorpusmillError):
    """A saved model that is incomplete, altered or of another kind."""


class StorageError(CorpusmillError):
    """An output location that cannot be used."""


def _rebuild(kind: type[CorpusmillError], code: str, details: dict[str, object]) -> CorpusmillError:
    return kind(code, **details)


MESSAGES: dict[str, str] = {
    # Usage and conf
    "CONF01": "no such conf file: {path}",
    "CONF02": "{path} is not valid YAML: {problem}",
    "CONF03": "unknown key {key!r}; allowed here: {allowed}",
    "CONF04": "{key} = {value}: {problem}",
    "CONF05": "missing key {key!r}: {problem}",
    "CONF06": "cannot read {key} = {path!r}: {problem}",
    "CONF07": "{argument!r} is no setting; write key=value, for instance model.max_iter=20",
    "CONF08": "{path}: ${{{name}}} is unknown; only ${{CORPUSMILL_DATA}} and "
    "${{CORPUSMILL_SAMPLES}} are replaced",
    "CONF09": "unknown action {action!r}; allowed: {allowed}",
    "CONF10": "{problem}; usage: {usage}",
    "CONF11": "the settings do not go together: {problem}",
    # Data
    "DATA01": "{source}: {problem}",
    "DATA02": "{bad} of {total} records ({share:.1%}) of {source} went to quarantine, "
    "more than quarantine.max_share = {limit:.1%}; reasons: {reasons}",
    "DATA03": "{source} has no usable record; {hint}",
    "DATA04": "column {column!r} is {found}; expected {expected}",
    "DATA05": "class {name!r} of {where} is not one of the model's classes: {allowed}",
    "DATA06": "column {column!r} is already there; rename or drop it first",
    # Alignment
    "ALIGN01": "a {old} model cannot start a {new} one; set model.instance_model = {old}",
    "ALIGN02": "the warm start's model has {old} features without names, the data {new}; "
    "save the vocabulary with the model or give equally many",
    "ALIGN03": "more than {limit} classes in column 'labels'; is it a column of names?",
    # Fragments
    "FRAG02": "class {name!r} of the conf has no training example or stands twice; there are "
    "examples of: {found}",
    "FRAG03": "feature {number} of the vectors is too large a number; at most {limit} for so many "
    "classes: number the features that occur, or leave them out by model.vector_weight = 0",
    "FRAG01": "more than {limit} classes in column 'target'; is it a column of names?",
    # Boosting
    "BOOST01": "{names} feature names for {width} features a row",
    "BOOST02": "rank {rank} cannot train with the others: {problem}; a rank has perhaps died, or "
    "the ports between executors are closed",
    # Spark, as it fails in the middle of a job
    "SPARK01": "out of memory: {problem}; {hint}",
    "SPARK02": "a Python worker ended without a word; it was perhaps killed for its memory: {hint}",
    "SPARK03": "{problem} (raised in a Python worker)",
    "SPARK04": "a barrier stage of {tasks} tasks needs as many slots at once, but {master} has "
    "{slots}; lower the number of tasks or start Spark with more cores",
    "SPARK05": "no space left on the device of the output or of spark.local.dir",
    "SPARK07": "Java, in which Spark's driver runs, has ended, perhaps for lack of memory: {hint}",
    "SPARK06": "Spark did not start with spark.master = {master!r}: {problem}",
    # Models
    "MODEL01": "{path} is no {kind} model: {problem}",
    "MODEL02": "{path}: {file} does not match its checksum in the manifest; "
    "the model was altered or not written whole",
    "MODEL03": "{kind!r} is no kind of model; allowed: {allowed}",
    # Storage
    "STORE01": "cannot write under {path!r}: {problem}",
    "STORE02": "{path} has no {part} yet; run {hint} first",
    "STORE03": "the output {path} was counted as {found} rows where {expected} were written",
    "STORE04": "another job is writing under {path}; wait until it ends, or choose another output",
    "STORE05": "run_id {run!r} under {path} was finished with another conf or other inputs; "
    "choose another run_id, or compute it again with restart=true",
    "STORE06": "{path} is damaged; restore it from the run that should be current",
    # Tracking
    "TRACK01": "MLflow at {uri}: {problem}",
}
