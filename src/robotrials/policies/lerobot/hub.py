"""Which commit of a Hub repository is meant: settled once, before anything is downloaded, and then loaded by its name.

A branch may move between two sessions of a run, or between the plan and the download; a commit cannot. As a program
(``python -m robotrials.policies.lerobot.hub OWNER/NAME REVISION``) it answers for an interpreter that lacks
huggingface_hub. Imports no torch.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from robotrials.errors import ConfigError
from robotrials.install import install_command

MAIN = "main"
TIMEOUT_S = 20.0
"""How long the Hub may take to name a commit before the cache is asked in its place."""

_COMMIT = re.compile(r"[0-9a-f]{40}")


def commit(repo: str, revision: Any = None, python: str | None = None) -> str:
    """The commit (40 hexadecimal digits) that ``revision`` of ``repo`` (a branch, a tag, a commit) is at this moment.

    The Hub is asked; where it cannot be reached or HF_HUB_OFFLINE is set, it is the commit of the local cache.
    ``python`` is an interpreter with huggingface_hub, for when this one has none.

    Raises:
        ConfigError: no such repository or revision, or neither Hub nor cache can tell.
    """
    name = str(revision or MAIN)
    if _COMMIT.fullmatch(name):
        return name
    if find_spec("huggingface_hub") is not None:
        found, why, remedy = _ask(repo, name)
    elif python is not None:
        return _ask_elsewhere(repo, name, python)
    else:
        found, why = None, f"huggingface_hub is not installed in {sys.executable}"
        remedy = f"install it here ({install_command('hub')})"
    found = found or _cached(repo, name)
    if found is None:
        raise ConfigError(
            f"--policy.path={repo} is no folder here, and which commit of the Hub's repository is {name} is unknown: "
            f"{why}, and {_cache(repo)} does not say it. What to do: {remedy}, or name the commit: "
            "--policy.pretrained_revision=<40 digits>"
        )
    return found


def refusal(repo: str, error: Exception) -> ConfigError | None:
    """What the Hub's client means by ``error`` about ``repo``, where it is an answer of the Hub and not a failure to
    reach it: no such repository, one that needs a token, or one that is gated."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    flag = f"--policy.path={repo}"
    if isinstance(error, GatedRepoError):
        return ConfigError(
            f"{flag} is a gated repository: ask for access at https://huggingface.co/{repo}, then log in "
            "(hf auth login) or set HF_TOKEN"
        )
    if isinstance(error, RepositoryNotFoundError):
        return ConfigError(
            f"{flag} is no folder here, and the Hub has no such repository that you may see; a private one needs "
            "hf auth login, or HF_TOKEN"
        )
    if isinstance(error, HFValidationError):
        return ConfigError(f"{flag} is no folder here, and no name of a repository on the Hub: {error}")
    status = error.response.status_code if isinstance(error, HfHubHTTPError) and error.response is not None else None
    if status in (401, 403):
        return ConfigError(f"{flag}: the Hub refuses it ({status}): log in (hf auth login), or look at HF_TOKEN")
    return None


def remember(repo: str, revision: Any, downloaded: str) -> None:
    """Note in the local cache that ``revision`` was ``downloaded``, as a download by that name would have: what is
    downloaded by its commit could not be found offline by its branch."""
    name = str(revision or MAIN)
    if not _COMMIT.fullmatch(name):
        ref = _cache(repo) / "refs" / name
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(downloaded, encoding="utf-8")


def _ask(repo: str, name: str) -> tuple[str | None, str, str]:
    """The Hub's answer, or None, why there is none, and what to do.

    Raises:
        ConfigError: it has no such repository or revision, or does not give it.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
    from huggingface_hub.errors import RevisionNotFoundError as NoRevision

    # A dead connection is an error of the HTTP library, which differs by version (requests, httpx, httpx2): all of
    # them are reached through the base that this class takes from it.
    unreachable = (*HfHubHTTPError.__bases__, OSError)
    try:
        return HfApi().model_info(repo, revision=name, timeout=TIMEOUT_S).sha, "the Hub names none", "try again"
    except NoRevision:
        raise ConfigError(f"--policy.pretrained_revision={name}: {repo} on the Hub has no such revision") from None
    except OfflineModeIsEnabled:
        return None, "HF_HUB_OFFLINE is set", "leave HF_HUB_OFFLINE out, or download the repository beforehand"
    except (HFValidationError, *unreachable) as error:
        refused = refusal(repo, error)
        if refused is not None:
            raise refused from None
        why = f"the Hub cannot be reached ({type(error).__name__}: {error})"
        return None, why, "let this machine reach the Hub, or download the repository beforehand"


def _ask_elsewhere(repo: str, name: str, python: str) -> str:
    command = [python, "-m", "robotrials.policies.lerobot.hub", repo, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer = done.stdout.strip()
    if done.returncode == 0 and _COMMIT.fullmatch(answer):
        return answer
    raise ConfigError(done.stderr.strip() or f"--policy.python={python} did not say which commit {repo}@{name} is")


def _cache(repo: str) -> Path:
    """The repository in the Hub's local cache (layout of huggingface_hub 1.x)."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    return cache / f"models--{repo.replace('/', '--')}"


def _cached(repo: str, name: str) -> str | None:
    ref = _cache(repo) / "refs" / name
    return ref.read_text(encoding="utf-8").strip() if ref.is_file() else None


def main(arguments: list[str]) -> int:
    """Write the commit of ``arguments`` (repository, revision) to standard output, or why not to standard error."""
    try:
        sys.stdout.write(commit(*arguments) + "\n")
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
