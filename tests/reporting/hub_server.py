"""A stand-in for the Hub's HTTP API, as much of it as huggingface_hub (1.4 to 2.4) asks when a commit is made.

The real client talks to it: who am I, does the repository exist, which files go where, large files by LFS, the commit
or the pull request. Repositories are kept in memory, as path to bytes.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_for_the_tests"
SHA = "a" * 40


@dataclass
class Hub:
    """What it holds and what was asked of it. ``pulls`` are pull requests: (repository, path to bytes)."""

    user: str = "me"
    orgs: list[dict[str, str]] = field(default_factory=list)
    repos: dict[str, dict[str, bytes]] = field(default_factory=dict)
    pulls: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)
    commits: list[dict[str, Any]] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    refuse_commits: bool = False
    url: str = ""


@contextlib.contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield hub
    server.shutdown()
    server.server_close()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer()

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("transfer-encoding") == "chunked":
                body = self._chunks()
            parts = urlsplit(self.path)
            status, headers, content = respond(
                hub, self.command, unquote(parts.path), parse_qs(parts.query), body, self
            )
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", headers.get("X-Length", str(len(content))))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _chunks(self) -> bytes:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

    return Handler


Answer = tuple[int, dict[str, str], bytes]


def respond(
    hub: Hub, method: str, path: str, query: dict[str, list[str]], body: bytes, handler: BaseHTTPRequestHandler
) -> Answer:
    if path.startswith("/upload/"):
        hub.blobs[path.rpartition("/")[2]] = body
        return 200, {}, b""
    if method != "GET" and method != "HEAD" and handler.headers.get("authorization") != f"Bearer {TOKEN}":
        return _json({"error": "Invalid username or password."}, 401)
    if path == "/api/whoami-v2":
        if handler.headers.get("authorization") != f"Bearer {TOKEN}":
            return _json({"error": "Invalid username or password."}, 401)
        return _json({"type": "user", "name": hub.user, "orgs": hub.orgs, "auth": {}})
    if path == "/api/validate-yaml":
        return _json({"errors": [], "warnings": []})
    if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(/.*)?", path):
        return _model(hub, found[1], found[2] or "", query, body)
    if found := re.fullmatch(r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
        return _lfs(hub, body)
    if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
        return _file(hub, found[1], found[2])
    return _json({"error": f"the stand-in knows no {method} {path}"}, 404)


def _model(hub: Hub, repo: str, rest: str, query: dict[str, list[str]], body: bytes) -> Answer:
    if repo not in hub.repos:
        return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
    if rest.startswith("/preupload/"):
        files = json.loads(body)["files"]
        modes = [{"path": f["path"], "uploadMode": "lfs" if f["path"].endswith(".mp4") else "regular"} for f in files]
        return _json({"files": [{**mode, "shouldIgnore": False, "oid": None} for mode in modes]})
    if rest.startswith("/commit/"):
        return _commit(hub, repo, query, body)
    if rest.startswith("/tree/"):
        listed = hub.repos[repo].items()
        return _json([{"type": "file", "path": path, "size": len(c), "oid": SHA} for path, c in listed])
    siblings = [{"rfilename": name} for name in hub.repos[repo]]
    return _json({"_id": "1", "id": repo, "modelId": repo, "sha": SHA, "private": False, "tags": [], "downloads": 0,
                  "likes": 0, "siblings": siblings})  # fmt: skip


def _commit(hub: Hub, repo: str, query: dict[str, list[str]], body: bytes) -> Answer:
    if hub.refuse_commits:
        return _json({"error": "You have no write access"}, 403)
    files: dict[str, bytes] = {}
    for line in map(json.loads, body.splitlines()):
        value = line["value"]
        if line["key"] == "header":
            hub.commits.append(value)
        elif line["key"] == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif line["key"] == "lfsFile":
            files[value["path"]] = hub.blobs[value["oid"]]
        elif line["key"] == "deletedFile":
            del hub.repos[repo][value["path"]]
    as_pr = query.get("create_pr") == ["1"]
    if as_pr:
        hub.pulls.append((repo, files))
    else:
        hub.repos[repo].update(files)
    answer = {"success": True, "commitOid": "b" * 40, "commitUrl": f"{hub.url}/{repo}/commit/{'b' * 40}"}
    return _json({**answer, **({"pullRequestUrl": f"{hub.url}/{repo}/discussions/1"} if as_pr else {})})


def _lfs(hub: Hub, body: bytes) -> Answer:
    objects = [
        {**wanted, "actions": {"upload": {"href": f"{hub.url}/upload/{wanted['oid']}"}}}
        for wanted in json.loads(body)["objects"]
    ]
    return _json({"transfer": "basic", "objects": objects}, kind="application/vnd.git-lfs+json")


def _file(hub: Hub, repo: str, name: str) -> Answer:
    if repo not in hub.repos:
        return 404, {"X-Error-Code": "RepoNotFound"}, b""
    content = hub.repos[repo].get(name)
    if content is None:
        return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": SHA}, b""
    digest = hashlib.sha1(content).hexdigest()
    return 200, {"ETag": f'"{digest}"', "X-Repo-Commit": SHA, "Content-Type": "text/plain"}, content


def _json(content: Any, status: int = 200, kind: str = "application/json") -> Answer:
    return status, {"Content-Type": kind}, json.dumps(content).encode()
