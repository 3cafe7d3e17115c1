import { defineCommand, type CommandContext } from "../command.js";
import { offersFor, type ServerValues } from "../completion/offers.js";
import { answerFor, scripts } from "../completion/scripts.js";
import { commandTree } from "./tree.js";

/** `completion` */
export const command = defineCommand({
  summary: "Print the completion script of a shell.",
  details: [
    'bash: eval "$(tinker-ts completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc;',
    "fish: tinker-ts completion fish > ~/.config/fish/completions/tinker-ts.fish",
    "The scripts ask with the words of a command line, after --, what may stand in place of the last.",
  ],
  options: {},
  arguments: {
    shell: { description: "bash, zsh or fish", choices: ["bash", "zsh", "fish"] },
    words: {
      description: "Words typed so far, for completion scripts",
      optional: true,
      multiple: true,
    },
  },
  async run(context, { arguments: { shell, words } }) {
    const { terminal } = context;
    if (words.length === 0) return terminal.out(scripts[shell]);
    const offers = await offersFor(commandTree, words, askServer(context));
    terminal.out(answerFor(shell, offers));
  },
});

function askServer(context: CommandContext): ServerValues {
  return async (kinds, { baseUrl, apiKey }) => {
    const globals = {
      ...context.globals,
      ...(baseUrl === undefined ? {} : { baseUrl }),
      ...(apiKey === undefined ? {} : { apiKey }),
    };
    const { serverValues } = await import("../connect/server-values.js");
    return serverValues({ ...context, globals }, kinds);
  };
}
