/** `itx completion`: the words that may follow, for bash, zsh and fish, from the command tree itself. */
import { Command } from "commander";

/** Every path of the tree with the subcommands and long options that may follow it. */
function tree(command: Command, path: string[] = []): [path: string, words: string[]][] {
  const words = [
    ...command.commands.map((child) => child.name()),
    ...command.options.flatMap((option) => (option.long == null ? [] : [option.long])),
  ];
  return [
    [path.join(" "), words],
    ...command.commands.flatMap((child) => tree(child, [...path, child.name()])),
  ];
}

function bash(program: Command): string {
  const cases = tree(program).map(([path, words]) => `    "${path}") words="${words.join(" ")}" ;;`);
  return `_itx() {
  local path="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  while :; do
    case "$path" in
${cases.join("\n")}
    esac
    [ -n "$words" ] || [ -z "$path" ] && break
    case "$path" in *" "*) path="\${path% *}" ;; *) path="" ;; esac
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _itx itx`;
}

const zsh = (program: Command) => `autoload -U +X bashcompinit && bashcompinit\n${bash(program)}`;

function fish(program: Command): string {
  return tree(program)
    .flatMap(([path, words]) =>
      words.map((word) => {
        const seen =
          path === ""
            ? "__fish_use_subcommand"
            : path
                .split(" ")
                .map((part) => `__fish_seen_subcommand_from ${part}`)
                .join("; and ");
        return word.startsWith("--")
          ? `complete -c itx -n '${seen}' -l ${word.slice(2)}`
          : `complete -c itx -f -n '${seen}' -a ${word}`;
      }),
    )
    .join("\n");
}

export function completionCommand(program: Command): Command {
  const shells: Record<string, (program: Command) => string> = { bash, zsh, fish };
  return new Command("completion")
    .description("print a completion script for bash, zsh or fish")
    .argument("<shell>", "bash, zsh or fish")
    .addHelpText("after", '\nExample:\n  $ eval "$(itx completion bash)"')
    .action((shell: string, _options: unknown, command: Command) => {
      const script = shells[shell];
      if (script === undefined)
        command.error(`error: completion knows bash, zsh and fish, not ${JSON.stringify(shell)}`);
      console.log(script(program));
    });
}
