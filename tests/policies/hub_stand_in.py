"""As much of the Hub as reading one model repository takes: which commit a revision is, and the files of a commit.

Folders are commits; ``move`` points a branch at another. Clients are other processes (``environment``), because
huggingface_hub reads its settings once, when it is imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


class ModelHub:
    """Repository ``me/act``: ``commits`` maps 40 hexadecimal digits to a folder, ``branches`` a name to such digits."""

    def __init__(self) -> None:
        self.commits: dict[str, Path] = {}
        self.branches: dict[str, str] = {}
        self.url = ""

    def move(self, branch: str, commit: str, folder: Path) -> None:
        self.commits[commit] = folder
        self.branches[branch] = commit

    def environment(self, home: Path, offline: bool = False) -> dict[str, str]:
        """Of a process for which this is the Hub, and ``home`` the cache."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
        return {**kept, "HF_ENDPOINT": self.url, "HF_HOME": str(home), "HF_HUB_OFFLINE": str(int(offline))}

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        parts = path.strip("/").split("/")
        if path.startswith("/api/models/me/act"):
            return self._about(parts[4] if len(parts) > 3 else "revision", parts[5] if len(parts) > 5 else "main")
        if parts[:3] == ["me", "act", "resolve"] and parts[3] in self.commits:
            file = self.commits[parts[3]] / parts[4]
            if file.is_file():
                content = file.read_bytes()
                etag = f'"{hashlib.sha1(content).hexdigest()}"'
                return 200, {"ETag": etag, "X-Repo-Commit": parts[3]}, content
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        if path.startswith("/api/models/me/gated"):
            return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
        if path.startswith("/api/models/me/token"):
            return 401, {"X-Error-Message": "Invalid credentials in Authorization header"}, b"{}"
        if path.startswith("/api/models/me/busy"):
            return 500, {}, b"{}"
        return 404, {"X-Error-Code": "RepoNotFound"}, b""

    def _about(self, what: str, revision: str) -> tuple[int, dict[str, str], bytes]:
        commit = self.branches.get(revision, revision)
        if commit not in self.commits:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        files = sorted(self.commits[commit].iterdir())
        listed = [{"rfilename": f.name} for f in files]
        about: object = {"id": "me/act", "modelId": "me/act", "sha": commit, "siblings": listed, "tags": []}
        if what == "tree":
            about = [{"type": "file", "path": f.name, "oid": "0" * 40, "size": f.stat().st_size} for f in files]
        return 200, {"Content-Type": "application/json"}, json.dumps(about).encode()


@contextlib.contextmanager
def serving(hub: ModelHub) -> Iterator[ModelHub]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            status, headers, content = hub.answer(unquote(urlsplit(self.path).path))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield hub
    server.shutdown()
    server.server_close()
