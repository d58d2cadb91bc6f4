#!/usr/bin/env bash
# lint_ci.sh: workflows (also that of examples/ci) with actionlint and zizmor, Dockerfiles with hadolint, scripts with shellcheck.
set -euo pipefail
cd "$(dirname "$0")/.."
actionlint .github/workflows/*.yml examples/ci/*.yml
zizmor --offline --quiet --persona=regular .github examples/ci
hadolint --failure-threshold=info docker/*.Dockerfile
shellcheck scripts/*.sh docker/*.sh examples/*/*.sh .ci/run
