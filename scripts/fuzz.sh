#!/usr/bin/env bash
# Runs every fuzzer for FUZZ_SECONDS (60) each, from the committed corpus; names on the command line choose some,
# and are then all that is built. What is found new stays in build/fuzz-corpus, what crashes in build/fuzz-crashes. SIZE=smoke
# runs for two seconds one that is built in a few.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
export PATH="$root/node_modules/.bin:$PATH"
seconds=${FUZZ_SECONDS:-60}
if [ "${SIZE:-}" = smoke ]; then
  [ $# -gt 0 ] || set -- resolver
  seconds=${FUZZ_SECONDS:-2}
  printf 'size: smoke\n'
fi

all=$(cd tests/fuzz && ls ./*_fuzzer.cpp | xargs -n1 basename | sed 's/_fuzzer\.cpp$//')
[ $# -gt 0 ] || set -- $all
for name in "$@"; do
  [ -f "tests/fuzz/${name}_fuzzer.cpp" ] || { printf 'there is no fuzzer %s; there are: %s\n' "$name" "$(echo $all)"; exit 2; }
done
cmake --preset fuzz >/dev/null
cmake --build build/fuzz --target "${@/%/_fuzzer}"
mkdir -p build/fuzz-crashes
runs=0
for name in "$@"; do
  fuzzer=build/fuzz/tests/fuzz/${name}_fuzzer
  mkdir -p "build/fuzz-corpus/$name"
  [ -d "tests/fuzz/corpus/$name" ] || { printf 'tests/fuzz/corpus/%s is missing\n' "$name"; exit 1; }
  printf '== %s for %s s\n' "$name" "$seconds"
  log="build/fuzz-corpus/$name.log"
  if ! "$fuzzer" "build/fuzz-corpus/$name" "tests/fuzz/corpus/$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 \
    -rss_limit_mb=2048 -artifact_prefix="build/fuzz-crashes/$name-" -print_final_stats=1 >"$log" 2>&1; then
    tail -n 40 "$log"
    exit 1
  fi
  grep number_of_executed_units "$log"
  runs=$((runs + 1))
done
printf 'fuzz: %s fuzzers ran clean for %s s each\n' "$runs" "$seconds"
