import { defineCommand } from "../command.js";
import { bashScript, fishScript, zshScript } from "../completion/scripts.js";
import { collectWords } from "../completion/words.js";
import { commandTree } from "./tree.js";

/** `completion` */
export const command = defineCommand({
  summary: "Prints the completion script of a shell.",
  details: [
    'bash: eval "$(tinker-ts completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc;',
    "fish: tinker-ts completion fish > ~/.config/fish/completions/tinker-ts.fish",
  ],
  options: {},
  arguments: { shell: { description: "bash, zsh or fish", choices: ["bash", "zsh", "fish"] } },
  async run({ terminal }, { arguments: { shell } }) {
    const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };
    terminal.out(scripts[shell](await collectWords(commandTree)));
  },
});
