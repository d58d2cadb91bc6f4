#!/usr/bin/env bash
# The libraries that simulators render with when there is no display: EGL and OSMesa.
set -euo pipefail
packages=(libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libgles2 libosmesa6)

[ "$(uname -s)" = Linux ] || exit 0
has() { ldconfig -p 2>/dev/null | grep -q "$1"; }
if has libEGL.so.1 && has libOSMesa.so && has libGL.so.1; then exit 0; fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  for package in "${packages[@]}"; do
    # Newer releases have dropped or renamed some of them; EGL alone is enough to render.
    apt-get install -y -qq --no-install-recommends "$package" >/dev/null || echo "no package $package here" >&2
  done
fi
if ! has libEGL.so.1 && ! has libOSMesa.so; then
  echo "robotrials: no EGL or OSMesa library: sudo apt-get install ${packages[*]}  (cameras and videos need it)" >&2
fi
