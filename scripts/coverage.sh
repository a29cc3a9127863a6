#!/usr/bin/env bash
# Line coverage of core/ by its own tests (unit tests and vectors), a table on standard output. Domains named on the command line
# are measured by their unit tests alone, and are then all that is built: each has to stand alone, as strings does. SIZE=smoke
# measures that one.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
if [ "${SIZE:-}" = smoke ]; then
  [ $# -gt 0 ] || set -- strings
  printf 'size: smoke\n'
fi
for domain in "$@"; do
  [ -f "core/src/$domain.cpp" ] && [ -f "tests/core/${domain}_test.cpp" ] ||
    { printf 'there is no core/src/%s.cpp with a tests/core/%s_test.cpp\n' "$domain" "$domain"; exit 2; }
done

build=build/coverage tests=core_tests
[ $# -eq 0 ] || build=build/coverage-domains tests=domain_tests
cmake --preset coverage -B "$build" "-DSANDBOXES_DOMAINS=$(IFS=';'; printf '%s' "$*")" >/dev/null
cmake --build "$build" --target "$tests"
LLVM_PROFILE_FILE=$build/core.profraw "$build/tests/core/$tests" >/dev/null
llvm-profdata-14 merge -sparse "$build/core.profraw" -o "$build/core.profdata"
llvm-cov-14 report "$build/tests/core/$tests" "-instr-profile=$build/core.profdata" \
  -show-functions=false -show-region-summary=false -show-branch-summary=false core/src core/include
