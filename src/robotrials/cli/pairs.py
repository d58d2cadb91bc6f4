"""Flags of the verbs with open-ended names: ``--name=value`` or ``--name value``, and plain words between them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from robotrials.errors import ConfigError

_TRUTHS = frozenset({"true", "false", "1", "0", "yes", "no", "on", "off"})


def read_pairs(argv: Sequence[str], bare: Collection[str] = ()) -> tuple[list[str], dict[str, str]]:
    """The plain words, and the flags by name (underscores for dashes). Flags in ``bare`` may stand without a value.

    Raises:
        ConfigError: a flag without its value, or given twice.
    """
    plain: list[str] = []
    flags: dict[str, str] = {}
    words = list(argv)
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            plain.append(word)
            continue
        written, equals, value = word[2:].partition("=")
        name = written.replace("-", "_")
        if name in flags:
            raise ConfigError(f"--{name} is given twice")
        if not equals and name in bare:
            value = words.pop(0) if words and words[0].lower() in _TRUTHS else "true"
        elif not equals:
            if not words or words[0].startswith("--"):
                raise ConfigError(f"--{name} needs a value: --{name}=VALUE")
            value = words.pop(0)
        flags[name] = value
    return plain, flags
