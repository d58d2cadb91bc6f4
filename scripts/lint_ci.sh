#!/usr/bin/env bash
# lint_ci.sh: workflows (also that of examples/ci) with actionlint and zizmor, Dockerfiles with hadolint, scripts with shellcheck.
set -euo pipefail
cd "$(dirname "$0")/.."
actionlint .github/workflows/*.yml examples/ci/*.yml
zizmor --offline --quiet --config .github/zizmor.yml .github examples/ci
hadolint --failure-threshold=info docker/*.Dockerfile
shellcheck --severity=warning scripts/*.sh docker/*.sh examples/*/*.sh .ci/run
