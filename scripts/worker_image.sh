#!/usr/bin/env bash
# worker_image.sh FOLDER: what the tests of --eval.runtime=docker need to build an image of workers without a network:
# FOLDER/system.tar, a Debian with Python 3.11 from the mirror that apt uses here, and FOLDER/packages/, the dependencies
# of robotrials[pusht]. Made once and kept. Needs root and debootstrap.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
suite=bookworm
mkdir -p "$folder"

if [ ! -f "$folder/system.tar" ]; then
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" 'Origin: Debian' | head -n 1)
  [ -n "$mirror" ] || { echo "worker_image.sh: apt knows no mirror of Debian $suite here" >&2; exit 1; }
  root=$(mktemp -d "$folder/root.XXXX")
  trap 'rm -rf "$root"' EXIT
  debootstrap --variant=minbase --include=python3 "$suite" "$root" "$mirror" >"$folder/debootstrap.log" 2>&1 ||
    { tail -n 5 "$folder/debootstrap.log" >&2; exit 1; }
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
  tar -C "$root" -cf "$folder/system.tar.part" .
  mv "$folder/system.tar.part" "$folder/system.tar"
fi

# Dependencies as this machine's tests have them. OpenCV without its windows: those need an X server's libraries.
wanted=$(cat "$here/pyproject.toml" "$here/requirements/tested.txt" | sha256sum)
if [ "$(cat "$folder/packages.of" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$folder/packages" "$folder/packages.of"
  printf '%s\n' "opencv-python; sys_platform == 'never'" >"$folder/overrides.txt"
  uv=$(command -v "$here/.venv/bin/uv" || command -v uv)
  "$uv" pip install --quiet --python-version 3.11 --target "$folder/packages" --override "$folder/overrides.txt" \
    --constraint "$here/requirements/tested.txt" "robotrials[pusht] @ $here" opencv-python-headless
  rm -rf "$folder"/packages/robotrials*  # the tests add the code that they test
  echo "$wanted" >"$folder/packages.of"
fi
