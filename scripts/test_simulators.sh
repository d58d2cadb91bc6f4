#!/usr/bin/env bash
# test_simulators.sh PYTHON [NAME ...] [-- PYTEST ARGUMENTS]: the tests of simulators that need an environment of their
# own, each in the one that `robotrials bench install` makes for it. Without names: all that can be installed and that
# PYTHON has not. PYTHON is one that has robotrials. A simulator that is missing then fails its tests.
set -euo pipefail
python=$1
shift
names=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do names+=("$1"); shift; done
[ "${1-}" != -- ] || shift

export ROBOTRIALS_HOME=${ROBOTRIALS_HOME:-$PWD/.venvs/simulators}
# The cache that other targets fill, too: a wheel is fetched once, and linked into each environment.
export UV_CACHE_DIR=${UV_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/uv}

if [ ${#names[@]} -eq 0 ]; then
  mapfile -t names < <("$python" - <<'LIST'
from robotrials.benchmarks.registry import benchmark_class, is_installed_here, names

elsewhere = {"lerobot_env"}  # make test-lerobot has it
for name in sorted(set(names()) - elsewhere):
    cls = benchmark_class(name)
    if cls.installation.requirements and not cls.installation.unavailable and not is_installed_here(cls):
        print(name)
LIST
  )
fi

uv=$(dirname "$python")/uv
[ -x "$uv" ] || uv=uv
failed=()
for name in ${names[@]+"${names[@]}"}; do
  echo "== $name" >&2
  if ! "$python" -m robotrials bench install "$name"; then failed+=("$name"); continue; fi
  "$python" -m robotrials bench exec "$name" python -c 'import psutil, pytest, pytest_timeout' 2>/dev/null ||
    "$uv" pip install --quiet --python "$ROBOTRIALS_HOME/environments/$name/current/bin/python" pytest pytest-timeout psutil
  mapfile -t files < <(find tests/benchmarks -name "test_${name}.py" -o -name "test_${name}_*.py" | sort)
  # Of one name that begins another's (libero, libero_plus), the files of the longer one are not its own.
  own=()
  for file in ${files[@]+"${files[@]}"}; do
    longer=$(for other in "${names[@]}"; do
      case $file in */test_"$other"*) [ ${#other} -le ${#name} ] || echo "$other" ;; esac
    done)
    [ -n "$longer" ] || own+=("$file")
  done
  ROBOTRIALS_REQUIRED_SIMULATOR=$name OMP_NUM_THREADS=1 LP_NUM_THREADS=1 \
    "$python" -m robotrials bench exec "$name" python -m pytest -q -p no:cacheprovider "$@" \
    ${own[@]+"${own[@]}"} tests/benchmarks/conformance/test_promises.py || failed+=("$name")
done

if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
