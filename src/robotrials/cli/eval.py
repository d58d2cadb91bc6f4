"""``robotrials eval``: evaluate a policy on a benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from robotrials.cli import output


def run(argv: Sequence[str]) -> int:
    """Parse, prepare, run, print; returns the exit status."""
    if any(word in ("--help", "-h") for word in argv):
        from robotrials.cli.help import eval_page

        output.text(eval_page())
        return 0
    from robotrials.cli.flags import parse_eval
    from robotrials.cli.runner import carry_out
    from robotrials.running.evaluate import prepare

    call = parse_eval(argv)
    for words in call.notes:
        output.note(words)
    return carry_out(prepare(call.config), dry_run=call.dry_run)
