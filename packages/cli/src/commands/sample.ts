import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { text as readAll } from "node:stream/consumers";
import type { Tokenizer } from "@tinker-ts/hub";
import type { SampledSequence, SampleResponse } from "tinker-ts";
import { defineCommand, type CommandContext } from "../command.js";
import { chatPrompt } from "../connect/chat-prompt.js";
import { orLocal } from "../connect/or-local.js";
import { withService } from "../connect/with-service.js";
import { CliError } from "../errors/cli-error.js";
import { jsonText } from "../output/json-text.js";
import { samplingOptions, samplingParams } from "../parse/sampling-options.js";
import { findSource } from "../connect/model-source.js";
import { sourceOptions } from "../parse/source-options.js";

/** A prompt as text, or as the tokens that a file lists. */
type Prompt = { readonly text: string } | { readonly tokens: readonly number[] };

/** `sample` */
export const command = defineCommand({
  summary: "Continue a prompt with a base model or a checkpoint.",
  details: [
    "One sample is printed as it is made; several are printed when they are finished.",
    'A prompt file that holds a JSON list of numbers, or {"tokens": [...]}, is taken as tokens.',
  ],
  options: {
    ...sourceOptions,
    prompt: { type: "string", short: "p", description: "Prompt" },
    promptFile: {
      type: "string",
      placeholder: "FILE",
      description: "File with the prompt; - for stdin",
    },
    chat: { type: "flag", description: "Apply the model's chat template" },
    numSamples: {
      type: "integer",
      short: "n",
      min: 1,
      default: 1,
      description: "Number of samples",
    },
    ...samplingOptions,
    output: { type: "string", short: "o", placeholder: "FILE", description: "File to write" },
  },
  arguments: { text: { description: "Prompt, as --prompt", optional: true } },
  examples: [
    'sample "Once upon a time" --model tinker-ts/sprout',
    'sample "Hello" --chat --model tinker://RUN_ID/sampler_weights/NAME',
  ],
  async run(given, { options, arguments: args }) {
    const context = orLocal(given);
    const source = await findSource(options, context.terminal.cwd);
    const prompt = await readPrompt(context, args.text, options);
    const { output, terminal } = context;
    const file =
      options.output === undefined ? undefined : path.resolve(terminal.cwd, options.output);
    if (file !== undefined && !existsSync(path.dirname(file))) {
      throw new CliError(`--output: the folder ${path.dirname(file)} does not exist.`);
    }
    const isLive = !output.isJson && file === undefined && options.numSamples === 1;
    await withService(context, async (open) => {
      const sampling = await open.service.createSamplingClient({ ...source, ...open.bounds });
      const tokenizer = await sampling.getTokenizer(open.bounds);
      const tokens = await toTokens(tokenizer, prompt, options.chat);
      const stream = sampling.stream({
        prompt: tokens,
        numSamples: options.numSamples,
        samplingParams: samplingParams(options, options.chat ? tokenizer.turnEnds : []),
        tokenizer,
        ...open.bounds,
      });
      // Headed when there is something below: an error has no heading.
      let written = `${heading(0)}\n`;
      if (isLive) {
        for await (const { text } of stream) {
          terminal.out(written + (text ?? ""));
          written = "";
        }
      }
      const response = await stream.response;
      if (isLive) {
        terminal.out(`${written}\n${summaryOf(response.sequences[0]!)}\n`);
        return;
      }
      const content = output.isJson
        ? jsonText(toJson(response, tokenizer))
        : toText(response, tokenizer);
      if (file === undefined) return output.line(content);
      await writeFile(file, `${content}\n`);
      output.note(`Wrote ${options.output}`);
    });
  },
});

async function readPrompt(
  { terminal }: CommandContext,
  text: string | undefined,
  options: { readonly prompt: string | undefined; readonly promptFile: string | undefined },
): Promise<Prompt> {
  const { prompt, promptFile } = options;
  const given = [text, prompt, promptFile].filter((value) => value !== undefined);
  if (given.length !== 1) {
    throw new CliError("Pass the text to continue once: as it is, with --prompt or --prompt-file.");
  }
  if (promptFile === undefined) return { text: given[0]! };
  const content =
    promptFile === "-"
      ? await readAll(terminal.input)
      : await readFile(path.resolve(terminal.cwd, promptFile), "utf8").catch((cause: Error) => {
          throw new CliError(`--prompt-file: ${promptFile} cannot be read: ${cause.message}`);
        });
  return { text: content, ...tokensIn(content) };
}

/** The tokens of a file that lists tokens; nothing for any other file. */
function tokensIn(content: string): { readonly tokens?: readonly number[] } {
  try {
    const json = JSON.parse(content) as unknown;
    const list: unknown = Array.isArray(json)
      ? json
      : (json as { tokens?: unknown } | null)?.tokens;
    if (Array.isArray(list) && list.every((item) => Number.isSafeInteger(item))) {
      return { tokens: list as number[] };
    }
  } catch {
    // Not JSON, so it is text.
  }
  return {};
}

async function toTokens(tokenizer: Tokenizer, prompt: Prompt, chat: boolean): Promise<number[]> {
  if ("tokens" in prompt) return [...prompt.tokens];
  if (chat) return chatPrompt(tokenizer, [{ role: "user", content: prompt.text }]);
  return [...tokenizer.encode(prompt.text)];
}

function heading(index: number): string {
  return `Sample ${index + 1}:`;
}

function summaryOf({ stopReason, logprobs }: SampledSequence): string {
  const values = Array.from(logprobs ?? []);
  const sum = values.reduce((total, value) => total + value, 0);
  const average = values.length === 0 ? "N/A" : (sum / values.length).toFixed(3);
  return `stop_reason=${stopReason} | avg_logprob=${average}`;
}

function toText({ sequences }: SampleResponse, tokenizer: Tokenizer): string {
  return sequences
    .map((sequence, index) => {
      const text = tokenizer.decode(sequence.tokens, { skipSpecialTokens: true });
      return `${heading(index)}\n${text}\n${summaryOf(sequence)}`;
    })
    .join("\n\n");
}

function toJson(response: SampleResponse, tokenizer: Tokenizer): unknown {
  return {
    sequences: response.sequences.map(({ tokens, logprobs, stopReason }) => ({
      text: tokenizer.decode(tokens, { skipSpecialTokens: true }),
      tokens: [...tokens],
      logprobs: logprobs && [...logprobs],
      stop_reason: stopReason,
    })),
    prompt_logprobs: response.promptLogprobs,
    topk_prompt_logprobs: response.topkPromptLogprobs,
    type: response.type,
  };
}
