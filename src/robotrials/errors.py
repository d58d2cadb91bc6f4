"""The exceptions of robotrials: one flat hierarchy; each message names what was wrong and what would be right."""

from __future__ import annotations


class RobotrialsError(Exception):
    """Base of every error that robotrials raises on purpose; its message is written for the person at the terminal."""


class ConfigError(RobotrialsError):
    """Raised when a flag, a configuration file or a combination of them cannot be meant; nothing has run yet."""


class NotInstalledError(ConfigError):
    """Raised when a benchmark or a policy needs a package that this interpreter lacks; the message names the extra."""


class ContractError(RobotrialsError):
    """Raised when a benchmark and a policy do not fit: a wrong shape, a missing key, a NaN action, no success signal.

    Trying again cannot help, so such an episode is not retried.
    """


class NonFiniteError(ContractError):
    """Raised when an action is NaN or infinity; or an observation or reward, where ``--eval.nonfinite=error``.

    An episode is a function of its spec, so such an episode is not retried.
    """


class CallOrderError(RobotrialsError):
    """Raised when calls come out of order: a step of an environment that was not reset, or that is closed."""


class IdentityError(RobotrialsError):
    """Raised when a run directory holds a run of another identity; the message lists what differs."""


class RunLockedError(RobotrialsError):
    """Raised when another coordinator is at work in the same run directory."""


class LedgerError(RobotrialsError):
    """Raised when results cannot be written down or read: a full disk, a lock that stays, a file that is damaged."""


class UnreadableLedgerError(LedgerError):
    """Raised when a ledger is gone, truncated, damaged, no SQLite file or of another version; nothing has run."""


class WireError(RobotrialsError):
    """Raised when bytes from a peer are not a message of this protocol version, or exceed its limits."""


class VideoError(RobotrialsError):
    """Raised when the video of an episode cannot be recorded; the episode's outcome does not depend on it."""


class NoPictureError(RobotrialsError):
    """Raised when an environment has no picture for a video; the episode's outcome does not depend on it.

    ``by_design``: it was made to draw nothing, so that nothing is wrong with it.
    """

    def __init__(self, message: str, by_design: bool = False) -> None:
        super().__init__(message)
        self.by_design = by_design


class DatasetError(RobotrialsError):
    """Raised when episodes cannot be kept or joined as a dataset; outcomes that were recorded do not depend on it."""


class InstallError(RobotrialsError):
    """Raised when the environment of a benchmark cannot be made; the message holds what the installer said last."""
