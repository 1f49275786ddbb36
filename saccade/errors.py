"""What can go wrong because of what a person gave us. The command line prints these as one line."""


class SaccadeError(Exception):
    """Something a user can mend; the message names the value, the rule and the way out."""


class ConfigError(SaccadeError):
    """A setting, or a combination of settings, that cannot work."""


class DataError(SaccadeError):
    """A file that cannot be read as the data it should hold."""


class RunError(SaccadeError):
    """A run folder that cannot be trained further or used."""


class CheckpointError(RunError):
    """A checkpoint that is damaged, foreign, or could not be written."""
