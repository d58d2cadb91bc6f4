#!/usr/bin/env bash
# make_venv.sh FOLDER PYTHON EXTRAS CONSTRAINTS: an environment with robotrials[EXTRAS], editable, at tested versions.
# A line of CONSTRAINTS that starts with "#+ " names a package to install besides.
set -euo pipefail
folder=$1 python=$2 extras=$3 constraints=$4

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "robotrials needs Python >= 3.10" >&2; exit 1; }
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check uv
mapfile -t more < <(sed -n 's/^#+ //p' "$constraints")
echo "installing robotrials[$extras] ${more[*]-} into $folder" >&2
"$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --constraint "$constraints" -e ".[$extras]" "${more[@]}"
