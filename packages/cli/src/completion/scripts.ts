import { programName } from "../dispatch/help.js";
import type { Place } from "./words.js";

/*
 * Every script works the same way: it joins the words that are no options to the longest known path
 * and offers what may follow it.
 */

/** Completion for bash. */
export function bashScript(places: readonly Place[]): string {
  return `_tinker_ts() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${paths(places)}) path="\${path:+$path }$word" ;;
    esac
  done
  local words=""
  case "$path" in
${cases(places)}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _tinker_ts ${programName}
`;
}

/** Completion for zsh. */
export function zshScript(places: readonly Place[]): string {
  const entries = places.map(
    ({ path, words }) =>
      `    ${quote(path)}) entries=(${words
        .map(({ text, description }) => quote(`${text.replaceAll(":", "\\:")}:${description}`))
        .join(" ")}) ;;`,
  );
  return `#compdef ${programName}
_tinker_ts() {
  local path="" word
  local -a entries
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${path:+$path }$word" in
      ${paths(places)}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${entries.join("\n")}
  esac
  _describe '${programName}' entries || _files
}
compdef _tinker_ts ${programName}
`;
}

/** Completion for fish. */
export function fishScript(places: readonly Place[]): string {
  const known = places.map(({ path }) => quote(path)).join(" ");
  const lines = places.flatMap(({ path, words }) =>
    words.map(({ text, description }) => {
      const condition = `-n ${quote(`test "$(__tinker_ts_path)" = ${JSON.stringify(path)}`)}`;
      const what = text.startsWith("--") ? `-l ${text.slice(2)}` : `-a ${text}`;
      return `complete -c ${programName} ${condition} ${what} -d ${quote(description)}`;
    }),
  );
  return `function __tinker_ts_path
  set -l path ""
  for word in (commandline -opc)[2..]
    set -l next (string trim "$path $word")
    if contains -- "$next" ${known}
      set path "$next"
    end
  end
  echo "$path"
end
${lines.join("\n")}
`;
}

function paths(places: readonly Place[]): string {
  return places
    .filter(({ path }) => path !== "")
    .map(({ path }) => quote(path))
    .join("|");
}

function cases(places: readonly Place[]): string {
  return places
    .map(
      ({ path, words }) =>
        `    ${quote(path)}) words=${quote(words.map(({ text }) => text).join(" "))} ;;`,
    )
    .join("\n");
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
