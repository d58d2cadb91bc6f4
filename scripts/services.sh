#!/usr/bin/env bash
# What tests start for themselves: dockerd, a Slurm cluster of one node, and the shells that have completion.
set -euo pipefail

missing=()
command -v dockerd >/dev/null || missing+=(docker.io)
command -v iptables >/dev/null || missing+=(iptables)
command -v debootstrap >/dev/null || missing+=(debootstrap)
command -v slurmctld >/dev/null || missing+=(slurm-wlm)
command -v munged >/dev/null || missing+=(munge)
command -v zsh >/dev/null || missing+=(zsh)
command -v fish >/dev/null || missing+=(fish)
[ "${#missing[@]}" = 0 ] && exit 0

if [ "$(uname -s)" = Linux ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null && exit 0
fi
echo "robotrials: without ${missing[*]} the tests of --eval.runtime=docker, of examples/slurm and of completion are skipped" >&2
