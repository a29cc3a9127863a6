#!/usr/bin/env bash
# Line coverage of core/ by its own tests (unit tests and vectors), a table on standard output.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
cmake --preset coverage >/dev/null
cmake --build build/coverage --target core_tests
LLVM_PROFILE_FILE=build/coverage/core.profraw build/coverage/tests/core/core_tests >/dev/null
llvm-profdata-14 merge -sparse build/coverage/core.profraw -o build/coverage/core.profdata
llvm-cov-14 report build/coverage/tests/core/core_tests -instr-profile=build/coverage/core.profdata \
  -show-functions=false -show-region-summary=false -show-branch-summary=false core/src core/include
