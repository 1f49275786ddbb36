"""What can go wrong because of what a person gave us. The command line prints these as one line."""


class SaccadeError(Exception):
    """Something a user can mend; the message names the value, the rule and the way out."""

    exit_code = 2


class ConfigError(SaccadeError):
    """A setting, or a combination of settings, that cannot work."""


class DataError(SaccadeError):
    """A file that cannot be read as the data it should hold."""


class RunError(SaccadeError):
    """A run folder that cannot be trained further or used."""


class CheckpointError(RunError):
    """A checkpoint that is damaged or foreign."""


class WriteError(SaccadeError):
    """A file that could not be written: the disk is full, or may not be written to."""

    exit_code = 1
