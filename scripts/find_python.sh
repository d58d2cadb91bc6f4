#!/usr/bin/env bash
# Prints the path of a Python: find_python.sh python3.12. Looks on the PATH, then in pyenv, then asks uv to fetch one.
set -euo pipefail
wanted=$1
version=${wanted#python}

works() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; }

# A pyenv shim is on the PATH for versions that are not the active one, and then refuses to run: hence the trial.
if path=$(command -v "$wanted") && works "$path"; then
  "$path" -c 'import sys; print(sys.executable)'
  exit
fi
if command -v pyenv >/dev/null; then
  for found in $(pyenv versions --bare | grep -E "^${version//./\\.}(\.|$)" | sort -rV); do
    path="$(pyenv prefix "$found")/bin/python"
    if works "$path"; then echo "$path"; exit; fi
  done
fi
if command -v uv >/dev/null && uv python install -q "$version" >&2; then
  uv python find "$version"
  exit
fi
echo "robotrials: no $wanted here. Install it (apt install ${wanted}-venv, pyenv install $version, or uv python install $version)" >&2
exit 1
