"""Putting a run on the Hub: one commit, or one pull request where the repository is not one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from robotrials.errors import ConfigError
from robotrials.reporting import hub_results
from robotrials.reporting.loading import LoadedRun, load_runs
from robotrials.version import __version__

_BLANK = frozenset(' \t\r\n<>"')
ARTIFACTS_ONLY = "without --benchmark_dataset_id no .eval_results are written: artifacts only"


@dataclass(frozen=True)
class PushOptions:
    """Where to, and as what.

    ``repo_id`` defaults to the policy's own repository. ``dataset_id`` is the benchmark's dataset; without it nothing
    is put on a leaderboard. ``task_id`` calls one overall score; None: one a suite. ``create_pr`` None: where the
    repository is not one's own. ``dry_run`` is a folder to write the same files to, in place of a commit.
    """

    repo_id: str | None = None
    dataset_id: str | None = None
    task_id: str | None = None
    source_url: str | None = None
    notes: str | None = None
    model_index: bool = False
    videos: bool = True
    create_pr: bool | None = None
    dry_run: Path | None = None


@dataclass(frozen=True)
class Pushed:
    """What was written: the commit's or the pull request's address (a folder, for a dry run), and the files there.
    ``replaced`` says what was there before, None where nothing was."""

    address: str
    files: tuple[str, ...]
    is_pull_request: bool
    scores: tuple[hub_results.Score, ...]
    replaced: str | None = None


def push(directory: Path, options: PushOptions) -> Pushed:
    """Publish the run in ``directory``.

    Raises:
        ConfigError: the run is partial or a shard; no repository is named or it does not exist; nobody is logged in.
        NotInstalledError: huggingface_hub is missing or too old.
    """
    hub_results.huggingface_hub()
    _check_links(options)
    (run,) = load_runs([directory])
    hub_results.check_publishable(run)
    repo_id = _repo_id(options, run.described["config"]["policy"].get("path"))
    found = hub_results.scores(run, options.task_id, options.notes)
    if options.dry_run is not None:
        return _write(run, repo_id, found, options, options.dry_run)
    return _commit(run, repo_id, found, options)


def preflight(options: PushOptions, policy_path: str | None) -> None:
    """Find out before hours of evaluation what would stop the push after them: package, login, repository.

    Raises:
        ConfigError, NotInstalledError: as ``push``.
    """
    hub_results.huggingface_hub()
    _check_links(options)
    repo_id = _repo_id(options, policy_path)
    if options.dry_run is None:
        api = _api()
        _asked(lambda: api.whoami())
        _asked(lambda: api.model_info(repo_id), repo_id)


def _repo_id(options: PushOptions, policy_path: str | None) -> str:
    repo_id = options.repo_id
    if repo_id is None:
        path = policy_path or ""
        is_repository = path.count("/") == 1 and not path.startswith((".", "~", "/", "builtin:"))
        if not is_repository or Path(path).exists():
            raise ConfigError("which repository? The policy did not come from one, so write --repo_id=USER/MODEL")
        repo_id = path
    _check_name("repo_id", repo_id, "model")
    return repo_id


def _check_name(flag: str, name: str, kind: str) -> None:
    hub = hub_results.huggingface_hub()
    try:
        hub.utils.validate_repo_id(name)
    except hub.utils.HFValidationError as error:
        raise ConfigError(f"--{flag}={name} is no repository's name, such as user/{kind}: {error}") from None
    if "/" not in name:
        raise ConfigError(f"--{flag}={name} lacks its owner: write --{flag}=USER/{name}")


def _check_links(options: PushOptions) -> None:
    if options.dataset_id is not None:
        _check_name("benchmark_dataset_id", options.dataset_id, "benchmark")
    if options.source_url is not None:
        try:
            parts = urlsplit(options.source_url)
            is_link = parts.scheme in ("http", "https") and bool(parts.hostname) and not _BLANK & {*options.source_url}
        except ValueError:
            is_link = False
        if not is_link:
            raise ConfigError(
                f"--eval_result_source_url={options.source_url} is no link: write https:// and where it leads"
            )


def _files(
    run: LoadedRun,
    repo_id: str,
    found: list[hub_results.Score],
    options: PushOptions,
    endpoint: str,
    existing: Callable[[str], str | None],
) -> dict[str, bytes | Path]:
    """Path in the repository to content, or to the file that has it. ``existing`` reads a text file that is there."""
    files: dict[str, bytes | Path] = dict(hub_results.artifacts(run, options.videos))
    if options.dataset_id:
        name = f".eval_results/{options.dataset_id.rpartition('/')[2]}.yaml"
        url = options.source_url or f"{endpoint}/{repo_id}/tree/main/{hub_results.folder(run)}"
        written = hub_results.results_yaml(run, found, options.dataset_id, url, existing(name))
        files[name] = written.encode()
    if options.model_index:
        model = repo_id.rpartition("/")[2]
        card = hub_results.model_card(run, found, model, options.dataset_id, existing("README.md"))
        files["README.md"] = card.encode()
    return files


def _write(run: LoadedRun, repo_id: str, found: list[hub_results.Score], options: PushOptions, target: Path) -> Pushed:
    """The dry run. No network: files that the repository has already are not merged with."""
    endpoint = hub_results.huggingface_hub().constants.ENDPOINT
    files = _files(run, repo_id, found, options, endpoint, lambda name: None)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"--dry_run={target} is not empty: choose another folder")
    for name, content in files.items():
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    return Pushed(str(target), tuple(sorted(files)), False, tuple(found))


def _commit(run: LoadedRun, repo_id: str, found: list[hub_results.Score], options: PushOptions) -> Pushed:
    hub, api = hub_results.huggingface_hub(), _api()
    who = _asked(lambda: api.whoami())
    _asked(lambda: api.model_info(repo_id), repo_id)
    as_pr = not _is_own(repo_id, who) if options.create_pr is None else options.create_pr

    def existing(name: str) -> str | None:
        if not _asked(lambda: api.file_exists(repo_id, name), repo_id):
            return None
        return Path(_asked(lambda: api.hf_hub_download(repo_id, name), repo_id)).read_text(encoding="utf-8")

    files = _files(run, repo_id, found, options, api.endpoint, existing)
    operations = [
        hub.CommitOperationAdd(
            path_in_repo=name, path_or_fileobj=content if isinstance(content, bytes) else str(content)
        )
        for name, content in files.items()
    ]
    there = _asked(lambda: api.list_repo_files(repo_id), repo_id)
    replaced, gone = _earlier(run, there, files, existing)
    operations += [hub.CommitOperationDelete(path_in_repo=name) for name in gone]
    info = _asked(
        lambda: api.create_commit(
            repo_id,
            operations,
            commit_message=f"Evaluation on {run.env}",
            commit_description="\n".join(f"{s.task_id}: {s.percent:.1f} %. {s.notes}" for s in found),
            create_pr=as_pr,
        ),
        repo_id,
    )
    return Pushed(
        str(info.pr_url or info.commit_url), tuple(sorted(files)), info.pr_url is not None, tuple(found), replaced
    )


def _earlier(
    run: LoadedRun, there: list[str], files: dict[str, bytes | Path], existing: Callable[[str], str | None]
) -> tuple[str | None, list[str]]:
    """What the repository says of an earlier result in the same folder, in words, and its videos that ``files`` does
    not write over: they show episodes of a result that is there no more."""
    folder = hub_results.folder(run)
    name = f"{folder}/eval_info.json"
    gone = [path for path in there if path.startswith(f"{folder}/videos/") and path not in files]
    if name not in there:
        return None, gone
    try:
        before = json.loads(existing(name) or "")["overall"]["n_episodes"]
    except (ValueError, KeyError, TypeError):
        before = "an unknown number of"
    after = run.summary.overall.n_finished
    words = f"replaces an earlier result in {folder}: {before} episodes before, {after} now"
    return words + (f"; {len(gone)} of its videos removed" if gone else ""), gone


def _api() -> Any:
    return hub_results.huggingface_hub().HfApi(library_name="robotrials", library_version=__version__)


def _is_own(repo_id: str, who: dict[str, Any]) -> bool:
    """Whether the owner is the user or an organisation where the user may write."""
    owner = repo_id.partition("/")[0]
    may_write = {
        org.get("name")
        for org in who.get("orgs") or ()
        if org.get("roleInOrg") in (None, "admin", "write", "contributor")
    }
    return owner == who.get("name") or owner in may_write


def _asked(call: Callable[[], Any], repo_id: str = "") -> Any:
    """The answer of the Hub, or its refusal in one sentence."""
    hub = hub_results.huggingface_hub()
    errors = hub.errors
    try:
        return call()
    except errors.LocalTokenNotFoundError:
        raise ConfigError("nobody is logged in to the Hub: run `hf auth login`, or set HF_TOKEN") from None
    except errors.RepositoryNotFoundError:
        raise ConfigError(
            f"there is no model repository {repo_id}, or this login may not see it: "
            f"create it with `hf repo create {repo_id}`, or name another with --repo_id"
        ) from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "?")
        told = error.server_message or str(error).splitlines()[0]
        raise ConfigError(f"the Hub refused ({status}): {told}; nothing was published") from None
    except (ValueError, OSError) as error:
        raise ConfigError(f"the Hub could not be reached or refused: {error}; nothing was published") from None
