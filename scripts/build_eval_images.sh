#!/usr/bin/env bash
# build_eval_images.sh [--benchmarks=NAME,...] [--registry=HOST/PATH] [--push] [--no-smoke] [--debian=IMAGE] [-- ARGUMENTS OF docker build]
#
# Builds robotrials-base and the image of each benchmark, and lets each play one episode with a random policy. Without names: those that
# need no download by hand and no GPU. With --registry images are called REGISTRY/robotrials-NAME:VERSION; --push pushes those that passed.
# --debian: what robotrials-base begins with, in the place of debian:12-slim.
set -euo pipefail
cd "$(dirname "$0")/.."
default=pusht,metaworld,aloha,gymnasium_robotics,robosuite,maniskill,libero

benchmarks=$default registry='' debian='' push=false smoke=true
while [ $# -gt 0 ]; do
  case $1 in
    --benchmarks=*) benchmarks=${1#*=} ;;
    --registry=*) registry=${1#*=} ;;
    --debian=*) debian=${1#*=} ;;
    --push) push=true ;;
    --no-smoke) smoke=false ;;
    --help | -h) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit ;;
    --) shift; break ;;
    *) echo "build_eval_images.sh: no $1; see --help" >&2; exit 1 ;;
  esac
  shift
done
if $push && [ -z "$registry" ]; then echo "build_eval_images.sh: --push needs --registry=HOST/PATH" >&2; exit 1; fi
IFS=, read -ra names <<<"$benchmarks"
for name in "${names[@]}"; do
  [ -f "docker/$name.Dockerfile" ] || { echo "build_eval_images.sh: there is no docker/$name.Dockerfile" >&2; exit 1; }
done

version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/robotrials/version.py)
# Indexes that pip and uv use here are used inside, too.
arguments=(--build-arg PIP_INDEX_URL --build-arg UV_INDEX_URL "$@")

echo "== robotrials-base" >&2
docker build --file docker/base.Dockerfile --tag robotrials-base ${debian:+--build-arg "BASE=$debian"} "${arguments[@]}" .

failed=()
for name in "${names[@]}"; do
  image=robotrials-${name//_/-}
  echo "== $image" >&2
  if ! docker build --file "docker/$name.Dockerfile" --tag "$image" --build-arg BASE=robotrials-base "${arguments[@]}" docker; then
    failed+=("$name")
    continue
  fi
  # As workers run: without network, root or anything to write to but /tmp. ROBOTRIALS_SMOKE_RUN: further words, such as --gpus=all.
  read -ra more <<<"${ROBOTRIALS_SMOKE_RUN:-}"
  if $smoke && ! docker run --rm --network=none --read-only --tmpfs=/tmp:rw,exec --cap-drop=ALL --security-opt=no-new-privileges \
    "${more[@]}" "$image" smoke; then
    failed+=("$name")
    continue
  fi
  if [ -n "$registry" ]; then
    docker tag "$image" "$registry/$image:$version"
    if $push; then docker push "$registry/$image:$version"; fi
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
