"""``robotrials eval``: evaluate a policy on a benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from robotrials.cli import output
from robotrials.errors import ConfigError

HELP = ("--help", "-h")


def run(argv: Sequence[str]) -> int:
    """Parse, prepare, run, print; returns the exit status."""
    if any(word in HELP for word in argv):
        return show_help([word for word in argv if word not in HELP])
    from robotrials.cli.flags import parse_eval
    from robotrials.cli.push import publish, take_from_eval

    argv, push = take_from_eval(argv)
    call = parse_eval(argv)
    for words in call.notes:
        output.note(words)
    if call.dry_run and call.config.seed is None:
        output.note("--seed=null: a new run draws its seed when it starts, so these seeds are an example")
    # Imported after parsing: a misspelt flag is answered before numpy and sockets are loaded.
    from robotrials.cli.runner import carry_out
    from robotrials.run.prepare import prepare

    with output.said_if_long("checking the benchmark and the policy"):
        prepared = prepare(call.config)
    if push is not None:
        from robotrials.reporting.hub import preflight

        preflight(push, prepared.config.policy.path)
    status = carry_out(prepared, dry_run=call.dry_run)
    if push is not None and not call.dry_run:
        if status == 0:
            publish(prepared.output_dir, push)
        else:
            output.note(f"not pushed, because it is partial; later: robotrials push {prepared.output_dir}")
    return status


def show_help(argv: Sequence[str]) -> int:
    """The help page, with the options of the benchmark that ``argv`` names; other mistakes in it do not matter."""
    from robotrials.cli.flags import read_flags
    from robotrials.cli.help import eval_page

    try:
        env_type = read_flags(argv).get("env.type", "")
    except ConfigError:
        env_type = ""
    output.text(eval_page(env_type))
    return 0
