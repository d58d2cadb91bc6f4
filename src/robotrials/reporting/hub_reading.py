"""Results from model repositories of the Hub, for a leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from robotrials.errors import ConfigError, RobotrialsError
from robotrials.reporting.hub_results import huggingface_hub
from robotrials.reporting.sources import LARGEST_FILE, Source, read_source, read_training
from robotrials.version import __version__

MAX_FILES = 200
"""Files of results in one repository; more is not a model's."""
_AT_A_TIME = 8


def read_repositories(names: Sequence[str]) -> tuple[list[Source], list[str]]:
    """The results of all repositories, and a line for each that gave none, so that none is missing silently.

    Raises:
        NotInstalledError: huggingface_hub is missing.
    """
    api = huggingface_hub().HfApi(library_name="robotrials", library_version=__version__)
    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        answers = list(threads.map(lambda name: _read(api, name), names))
    return [source for found, _ in answers for source in found], [line for _, lines in answers for line in lines]


def _read(api: Any, name: str) -> tuple[list[Source], list[str]]:
    hub = huggingface_hub()
    try:
        hub.utils.validate_repo_id(name)
        files = {
            item.path: item.size for item in api.list_repo_tree(name, recursive=True) if getattr(item, "size", None)
        }
        chosen = [path for path in sorted(files) if PurePosixPath(path).name == "eval_info.json"][:MAX_FILES]
        if not chosen:
            return [], [f"{name}: it holds no eval_info.json"]
        training = read_training(_fetch(api, name, "train_config.json", files) or Path("absent"))
    except hub.utils.HFValidationError:
        return [], [f"{name}: this is no name of a repository, such as user/model"]
    except hub.errors.RepositoryNotFoundError:
        return [], [f"{name}: there is no such model repository, or this login may not see it"]
    except (hub.errors.HfHubHTTPError, OSError, ConfigError) as error:
        return [], [f"{name}: {str(error).splitlines()[0]}"]
    found: list[Source] = []
    lines: list[str] = []
    for path in chosen:
        try:
            file = _fetch(api, name, path, files)
            _fetch(api, name, str(PurePosixPath(path).with_name("eval_config.json")), files)
            if file is None:
                continue
            source = read_source(file, name, f"{name}/{path}", training)
            found.append(replace(source, env=source.env or _env_of(path), repo_id=name))
        except (RobotrialsError, hub.errors.HfHubHTTPError, OSError) as error:
            lines.append(f"{name}/{path}: {str(error).splitlines()[0]}")
    return found, lines


def _fetch(api: Any, name: str, path: str, files: dict[str, int]) -> Path | None:
    """The file in the Hub's cache, so that files of one folder lie beside one another; None where there is none.

    Raises:
        ConfigError: it is far too large for what it is called.
    """
    if path not in files:
        return None
    if files[path] > LARGEST_FILE:
        raise ConfigError(f"{path} has more than {LARGEST_FILE // 2**20} MB")
    return Path(api.hf_hub_download(name, path))


def _env_of(path: str) -> str:
    """``eval/<env>/...``: where lerobot users put results."""
    parts = PurePosixPath(path).parts
    return parts[1] if len(parts) > 2 and parts[0] == "eval" else ""
