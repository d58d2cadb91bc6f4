#!/usr/bin/env bash
# lavapipe.sh PREFIX: makes PREFIX/lavapipe/icd.json, a software Vulkan driver new enough for SAPIEN (ManiSkill).
#
# SAPIEN finds no device in Mesa 22 (Debian 12); Mesa 25.0.7 works. Where the system's Mesa is new enough, icd.json leads to it. Otherwise
# the newest one that this distribution offers, backports included, is unpacked below PREFIX: the system's stays as it is, root is
# not needed. Doing it twice does nothing. LAVAPIPE_FORCE=1 unpacks even where the system's would do.
set -euo pipefail
folder=$(mkdir -p "${1:?usage: lavapipe.sh PREFIX}/lavapipe" && cd "$1/lavapipe" && pwd)
oldest=24
fail() { echo "lavapipe: $*" >&2; exit 1; }
major() { local v=${1#*:}; v=${v%%.*}; case $v in '' | *[!0-9]*) echo 0 ;; *) echo "$v" ;; esac; }
driver() { find "$1" -name 'lvp_icd*.json' -print -quit 2>/dev/null || true; }

[ -s "$folder/icd.json" ] && exit 0
[ "$(uname -s)" = Linux ] || fail "SAPIEN renders on Linux only"
installed=$(dpkg-query -W -f '${Version}' mesa-vulkan-drivers 2>/dev/null || true)
system=$(driver /usr/share/vulkan/icd.d)
if [ -n "$system" ] && [ -z "${LAVAPIPE_FORCE:-}" ]; then
  # Without dpkg nobody knows the version: a driver of another distribution is taken as it is.
  if ! command -v dpkg-query >/dev/null || [ "$(major "$installed")" -ge $oldest ]; then
    ln -sf "$system" "$folder/icd.json"
    exit 0
  fi
fi
command -v apt-get >/dev/null || fail "install Mesa's Vulkan drivers, version $oldest or newer, with this system's package manager"

# A private copy of apt's state: its own lists, with backports, and nothing installed by it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/debs" "$work/sources" "$work/preferences"
cp -r /etc/apt/sources.list /etc/apt/sources.list.d/. "$work/sources/" 2>/dev/null || true
options=(-qq -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" -o "Dir::Cache::archives=$work/archives"
  -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/sources" -o "Dir::Etc::preferencesparts=$work/preferences"
  -o APT::Sandbox::User=root)
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# The mirror that apt already uses for this release.
mirror=$(apt-get indextargets --format '$(CODENAME) $(SUITE) $(SITE)' "Created-By: Packages" 2>/dev/null |
  awk -v c="$codename" '$1 == c || $2 == c { print $NF; exit }')
mirror=${mirror:-$(awk '/^URIs:/ { print $2; exit } /^deb / { for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) { print $i; exit } }' "$work"/sources/* 2>/dev/null || true)}
keyring=$(find /usr/share/keyrings -name 'debian-archive-keyring.*' -print -quit 2>/dev/null || true)
suite=$codename
if [ "$(. /etc/os-release && echo "$ID")" = debian ] && [ -n "$mirror" ]; then
  suite=$codename-backports
  echo "deb ${keyring:+[signed-by=$keyring] }$mirror $suite main" >"$work/sources/lavapipe-backports.list"
fi
apt-get "${options[@]}" update >"$work/log" 2>&1 || grep -q mesa-vulkan-drivers "$work"/lists/*Packages* 2>/dev/null ||
  fail "the package lists cannot be read: $(tail -1 "$work/log")"

# What would be installed, without installing it: the drivers, and what they need that is not here.
apt-get "${options[@]}" -s --no-install-recommends -t "$suite" install mesa-vulkan-drivers libvulkan1 >"$work/plan" 2>"$work/log" ||
  fail "no Vulkan drivers to be had: $(tail -1 "$work/log")"
mapfile -t wanted < <(sed -nE 's/^Inst ([^ ]+) (\[[^]]*\] )?\(([^ ]+) .*/\1=\3/p' "$work/plan")
[ ${#wanted[@]} -gt 0 ] || wanted=(mesa-vulkan-drivers)
(cd "$work/debs" && apt-get "${options[@]}" download "${wanted[@]}" >"$work/log" 2>&1) || fail "download failed: $(tail -1 "$work/log")"
root=$folder/root.new
rm -rf "$root" "$folder/root"
mkdir "$root"
for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$root"; done
found=$(find "$root" -name 'libvulkan_lvp.so' -print -quit)
[ -n "$found" ] || fail "no lavapipe in ${wanted[*]}"
version=$(dpkg-deb -f "$work"/debs/mesa-vulkan-drivers_*.deb Version)
[ "$(major "$version")" -ge $oldest ] || fail "the newest Mesa for $codename is $version; SAPIEN needs $oldest or newer"
# Only the software driver and the libraries it links: a hundred megabytes of drivers for graphics cards go.
find "$root" \( -name 'libvulkan_*' -o -name 'libVkLayer*' -o -name 'libgallium*' \) ! -name libvulkan_lvp.so -delete
find "$root" -type d \( -name dri -o -name gbm -o -name doc -o -name drirc.d \) -prune -exec rm -rf {} +
mv "$root" "$folder/root"
found=$folder/root${found#"$root"}
# What the driver needs and the system lacks came along; the rest must be there. robotrials loads the former by this list.
libraries=$(dirname "$found")
LD_LIBRARY_PATH=$libraries ldd "$found" | awk '/not found/ { print $1 }' >"$work/lacking"
[ ! -s "$work/lacking" ] || fail "the system lacks $(tr '\n' ' ' <"$work/lacking")which Mesa $version needs"
ldd "$found" | awk -v at="$libraries/" '/not found/ { print at $1 }' >"$folder/libraries"
sed -E "s|(\"library_path\": *)\"[^\"]*\"|\1\"$found\"|" "$(driver "$folder/root")" >"$folder/icd.json.new"
mv "$folder/icd.json.new" "$folder/icd.json"
echo "lavapipe: Mesa $version below $folder" >&2
