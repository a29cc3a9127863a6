/**
 * A command with a deadline of its own, as shell text. The command leads a process group and a session; at the deadline they get TERM,
 * then KILL, and the shell returns 124 only when `ps` shows none of them any more. What had been printed stays printed. A process
 * that leaves both with setsid of its own is out of reach.
 */

/** Between TERM and KILL, and again until the killed are gone: steps of a tenth of a second. */
const GRACE_STEPS = 15;

/** The kernel takes no argument of 128 KiB; in characters, any of which may be four bytes. */
const LARGEST_ARGUMENT = 30_000;

const WATCH = `
left() {
  if command -v ps >/dev/null; then
    ps -e -o pgid=,sid=,stat= | awk -v p="$1" '($1==p||$2==p)&&$3!~/^Z/{f=1}END{exit !f}'
  else
    kill -0 -- -"$1"
  fi
}
gone() {
  i=0
  while left "$1"; do
    [ "$i" -lt ${GRACE_STEPS} ] || return 1
    i=$((i+1)); sleep 0.1
  done
}
sleep "$3"
mkdir "$1" || exit 0
kill -TERM -- -"$2"; kill -CONT -- -"$2"
gone "$2" && exit 0
kill -KILL -- -"$2"; pkill -KILL -s "$2"
gone "$2"
exit 0
`;

/**
 * Whoever makes the folder first has decided whether the command ended by itself. In memory where that can be: on a full disk nobody
 * could make it, and a command that filled it would neither end nor be ended.
 */
function chooseFolder(id: string): string {
  return `__d=/tmp; [ -d /dev/shm ] && [ -w /dev/shm ] && __d=/dev/shm; __d=$__d/.sandbox-deadline-${id}`;
}

/** `id` names this run; it must not repeat within a container. */
export function withDeadline(command: string, timeoutMs: number, id: string): string {
  const seconds = (timeoutMs / 1000).toFixed(3);
  const large = command.length > LARGEST_ARGUMENT;
  // A shell reports a child that a signal ended; nobody asked about these.
  return `(
${chooseFolder(id)}
${large ? `printf %s ${quote(command)} >"$__d.sh"` : ":"}
setsid /bin/bash ${large ? '"$__d.sh"' : `-c ${quote(command)}`} </dev/null & __p=$!
setsid /bin/bash -c ${quote(WATCH)} deadline "$__d" "$__p" ${seconds} </dev/null >/dev/null 2>&1 & __w=$!
{ wait "$__p"; __s=$?; } 2>/dev/null
if mkdir "$__d" 2>/dev/null; then
  disown "$__w"; kill -KILL "$__w" -- -"$__w" 2>/dev/null
else
  wait "$__w"; __s=124
  echo ${quote(`the command did not end within ${timeoutMs} ms and was ended with its process group`)} >&2
fi
rm -rf "$__d" "$__d.sh"
exit "$__s"
)`;
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
