#!/usr/bin/env bash
# build_release.sh [TAG]: the wheel and the source distribution in dist/, checked: TAG is the version, the changelog has it, the wheel installs
# and runs on its own.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/robotrials/version.py)
if [ $# -gt 0 ]; then
  [ "$1" = "v$version" ] || { echo "the tag is $1, but the version is $version" >&2; exit 1; }
  grep -q "^## $version" CHANGELOG.md || { echo "CHANGELOG.md has no section $version" >&2; exit 1; }
fi
rm -rf dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet --disable-pip-version-check "build>=1.2,<2" "twine>=6"
"$work/build/bin/python" -m build --outdir dist .
"$work/build/bin/twine" check --strict dist/*
python3 -m venv "$work/user"
"$work/user/bin/pip" install --quiet --disable-pip-version-check dist/*.whl
[ "$("$work/user/bin/robotrials" --version)" = "robotrials $version" ]
"$work/user/bin/robotrials" eval --help >/dev/null
ls -l dist
