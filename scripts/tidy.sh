#!/usr/bin/env bash
# clang-tidy over core/, bindings/ and engine/ (see .clang-tidy), by the same groups of files that are compiled together. Folders
# and files named on the command line choose some; SIZE=smoke is one file. Every exception in the sources needs its reason, and they are counted.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
export PATH="$root/node_modules/.bin:$PATH"
if [ "${SIZE:-}" = smoke ]; then
  [ $# -gt 0 ] || set -- core/src/strings.cpp
  printf 'size: smoke\n'
fi
chosen=("$@")
[ ${#chosen[@]} -gt 0 ] || chosen=(core bindings engine)
for one in "${chosen[@]}"; do
  [ -e "$one" ] || { printf 'there is no %s\n' "$one"; exit 2; }
done

cmake --preset tidy >/dev/null
log=build/tidy/tidy.log
: >"$log"

# What is compiled: single files of the folders, and files that include several of one folder. A file that was named is taken
# as it is, with the flags of its neighbours.
sources() {
  local one
  for one in "${chosen[@]}"; do
    if [ -f "$one" ]; then
      printf '%s\n' "$root/$one"
    else
      jq -r '.[].file' build/tidy/compile_commands.json | grep -E "^$root/(build/tidy/)?${one%/}/" | sort -u
    fi
  done
}
failed=0
while read -r source; do
  started=$SECONDS
  # The kernel's headers leave their names to the library's where those come first, as they do in the build's precompiled header.
  if ! clang-tidy -p build/tidy --quiet --extra-arg-before=-includenet/if.h "$source" >>"$log" 2>/dev/null; then failed=1; fi
  printf '%4d s  %s\n' "$((SECONDS - started))" "${source#"$root/"}"
done < <(sources)

findings=$(grep -cE ' (warning|error): ' "$log" || true)
if [ "$failed" -ne 0 ] || [ "$findings" -ne 0 ]; then
  grep -E -A 4 ' (warning|error): ' "$log" | sed "s#$root/##g"
  printf 'clang-tidy: %s finding(s)\n' "$findings"
  exit 1
fi

exceptions=$(grep -rnE 'NOLINT(NEXTLINE|BEGIN)?\b' --include='*.[ch]pp' "${chosen[@]}" || true)
bare=$(printf '%s' "$exceptions" | grep -vE 'NOLINT(NEXTLINE|BEGIN)?\([a-zA-Z-]+(\.[a-zA-Z-]+)*(, ?[a-zA-Z.-]+)*\):? .+' || true)
if [ -n "$bare" ]; then
  printf 'exceptions that name no check or no reason:\n%s\n' "$bare"
  exit 1
fi
printf 'clang-tidy: no finding in %s; exceptions with a reason: %s\n' "${chosen[*]}" \
  "$(printf '%s' "$exceptions" | grep -c . || true)"
