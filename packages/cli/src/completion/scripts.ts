import { programName } from "../dispatch/help.js";
import type { Offer, Offers } from "./offers.js";

/*
 * Every script asks the program itself, `completion SHELL -- WORDS`, with the words up to the cursor. The
 * first line of the answer is "files" or "words", the others are what may come next.
 */

/** The shells that are known. */
export type Shell = "bash" | "zsh" | "fish";

/** The answer to a script. */
export function answerFor(shell: Shell, { words, files }: Offers): string {
  return [files ? "files" : "words", ...words.map(lineFor[shell])].map((it) => `${it}\n`).join("");
}

const lineFor: Readonly<Record<Shell, (offer: Offer) => string>> = {
  bash: ({ text }) => text,
  zsh: ({ text, description }) => `${text.replace(/[\\:]/g, "\\$&")}:${description}`,
  fish: ({ text, description }) => `${text}\t${description}`,
};

/** The completion script of every shell. */
export const scripts: Readonly<Record<Shell, string>> = {
  // Bash breaks words at : and =, and replaces only what follows the last of them.
  bash: `_tinker_ts() {
  local line="\${COMP_LINE:0:COMP_POINT}" breaks="" cut="" kind="" offer current
  local -a given
  read -ra given <<< "$line"
  [[ $line == *[[:space:]] ]] && given+=("")
  current="\${given[\${#given[@]}-1]}"
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=":"
  [[ $COMP_WORDBREAKS == *=* ]] && breaks+="="
  [[ -n $breaks ]] && cut="\${current%"\${current##*[$breaks]}"}"
  COMPREPLY=()
  {
    read -r kind
    while IFS= read -r offer; do COMPREPLY+=("\${offer#"$cut"}"); done
  } < <(command ${programName} completion bash -- "\${given[@]:1}" 2> /dev/null < /dev/null)
  [[ $kind == files ]] && compopt -o default 2> /dev/null
  return 0
}
complete -F _tinker_ts ${programName}
`,
  // The script may stand before or after compinit in ~/.zshrc, without it, or as a file of the fpath.
  zsh: `#compdef ${programName}
_tinker_ts() {
  local -a answer entries
  local code=1
  answer=("\${(@f)$(command ${programName} completion zsh -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2> /dev/null < /dev/null)}")
  entries=("\${(@)answer[2,-1]}")
  (( \${#answer} > 1 )) && _describe '${programName}' entries && code=0
  [[ $answer[1] == files ]] && _files && code=0
  return code
}
_tinker_ts_register() {
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
  compdef _tinker_ts ${programName}
  (( $+functions[add-zsh-hook] )) && add-zsh-hook -d precmd _tinker_ts_register
  return 0
}
if [[ $funcstack[1] == _${programName} ]]; then
  _tinker_ts "$@"
elif (( $+functions[compdef] )); then
  _tinker_ts_register
else
  autoload -Uz add-zsh-hook && add-zsh-hook precmd _tinker_ts_register
fi
`,
  fish: `function __tinker_ts_offers
  set -l given (commandline -opc)
  set -e given[1]
  set -l current (commandline -ct)
  set -l answer (command ${programName} completion fish -- $given "$current" 2> /dev/null < /dev/null)
  if test "$answer[1]" = files
    __fish_complete_path "$current"
  end
  set -e answer[1]
  for offer in $answer
    echo $offer
  end
end
complete -c ${programName} -f -a '(__tinker_ts_offers)'
`,
};
