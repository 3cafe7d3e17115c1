import type { StudioExhibitKind, StudioMessage } from "tinker-ts/wire";
import type { ExhibitContent, ExhibitHead } from "../recording/data-exhibits.js";
import { toNumber, toPlain } from "../store/sql.js";
import type { RunFiles } from "./folder-files.js";
import type { JsonLine } from "./line-file.js";

/** Something to look at in a run's folder. */
export interface FolderExhibit {
  readonly split: string;
  readonly head: ExhibitHead;
  readonly content: ExhibitContent;
  /** The line that it comes from. */
  readonly raw: unknown;
  readonly at: number;
}

const iteration = /^iteration_(\d{6})$/;
const summaries = /^(.+?)_rollout_summaries\.jsonl$/;
const samplesFile = "capture/sample.jsonl";

/** Steps that have exhibits of a kind, ascending. */
export async function exhibitStepsOfFolder(
  files: RunFiles,
  kind: StudioExhibitKind,
): Promise<number[]> {
  if (kind === "datum") return [];
  if (kind === "sample") {
    const steps = new Set((await files.lines(samplesFile)).map(stepOfSample));
    return [...steps].toSorted((a, b) => a - b);
  }
  const steps = (await files.names())
    .flatMap((name) => iteration.exec(name)?.[1] ?? [])
    .map(Number);
  if (steps.length > 0) return steps.toSorted((a, b) => a - b);
  return (await benchmarksOf(files)).length > 0 ? [0] : [];
}

/** What a folder has of a step: rollouts of iterations and evaluations, samples that were captured. */
export async function exhibitsOfFolder(
  files: RunFiles,
  kind: StudioExhibitKind,
  step: number,
): Promise<FolderExhibit[]> {
  if (kind === "datum") return [];
  if (kind === "sample") {
    const lines = (await files.lines(samplesFile)).filter((line) => stepOfSample(line) === step);
    return lines.flatMap(toSamples);
  }
  const name = `iteration_${String(step).padStart(6, "0")}`;
  const found: FolderExhibit[] = [];
  for (const file of await files.names(name)) {
    const split = summaries.exec(file)?.[1];
    if (split !== undefined) found.push(...(await rolloutsOf(files, name, split)));
  }
  if (found.length === 0 && step === 0) {
    for (const benchmark of await benchmarksOf(files)) {
      const lines = await files.lines(`${benchmark}/trajectories.jsonl`);
      found.push(...lines.map((line) => toTrajectory(line, benchmark)));
    }
  }
  return found;
}

/** Rollouts from summaries, with conversations where a log tree has as many. */
async function rolloutsOf(files: RunFiles, name: string, split: string): Promise<FolderExhibit[]> {
  const rows = await files.lines(`${name}/${split}_rollout_summaries.jsonl`);
  const conversations = conversationsOf(await files.json(`${name}/${split}_logtree.json`));
  const texts = await files.lines(`${name}/${split}_transcripts.jsonl`);
  const isMatched = conversations.length === rows.length;
  return rows.map((row, index) => {
    const own = texts.find(
      (text) => text["group_idx"] === row["group_idx"] && text["traj_idx"] === row["traj_idx"],
    );
    const text = typeof own?.["text"] === "string" ? own["text"] : undefined;
    return toRollout(row, split, index, isMatched ? conversations[index] : undefined, text);
  });
}

function toRollout(
  row: JsonLine,
  split: string,
  index: number,
  messages: readonly StudioMessage[] | undefined,
  text: string | undefined,
): FolderExhibit {
  const steps = (Array.isArray(row["steps"]) ? row["steps"] : []) as JsonLine[];
  const sum = (name: string): number =>
    steps.reduce((total, one) => total + (toNumber(one[name]) ?? 0), 0);
  const { trajectory_metrics: metrics = {}, stop_reason: stopReason } = row;
  return {
    split,
    at: 0,
    raw: row,
    head: {
      group: toNumber(row["group_idx"]) ?? null,
      index: toNumber(row["traj_idx"]) ?? index,
      reward: plainOrNull(row["total_reward"]),
      advantage: null,
      nll: null,
      tokenCount: sum("ob_len") + sum("ac_len"),
      trainedCount: sum("ac_len"),
      stopReason: typeof stopReason === "string" ? stopReason : null,
    },
    content: {
      columns: { tokens: [] },
      extra: { text, messages, metrics, logs: steps.flatMap((one) => logsOf(one["logs"])) },
    },
  };
}

/** An example of an evaluation: its turns, what it was worth, what went wrong. */
function toTrajectory(row: JsonLine, benchmark: string): FolderExhibit {
  const turns = (Array.isArray(row["turns"]) ? row["turns"] : []) as JsonLine[];
  const { error, metrics = {} } = row;
  const failed = typeof error === "string" ? [`error: ${error}`] : [];
  const count = (isOwn: (role: unknown) => boolean): number =>
    turns
      .filter(({ role }) => isOwn(role))
      .reduce((total, { token_count: tokens }) => total + (toNumber(tokens) ?? 0), 0);
  return {
    split: benchmark,
    at: 0,
    raw: row,
    head: {
      group: toNumber(row["idx"]) ?? null,
      index: 0,
      reward: plainOrNull(row["reward"]),
      advantage: null,
      nll: null,
      tokenCount: count(() => true),
      trainedCount: count((role) => role === "assistant"),
      stopReason: failed.length > 0 ? "error" : null,
    },
    content: {
      columns: { tokens: [] },
      extra: { messages: turns.map(toMessage), metrics, logs: [...failed, ...logsOf(row["logs"])] },
    },
  };
}

/** The answers of one request to sample, each with the prompt before it. */
function toSamples(row: JsonLine): FolderExhibit[] {
  const scope = (row["scope"] ?? {}) as JsonLine;
  const { samples, prompt_tokens: given, base_model: base, created_at: at, ...rest } = row;
  const prompt = numbersOf(given);
  const purpose = scope["split"] ?? scope["purpose"];
  return (Array.isArray(samples) ? (samples as JsonLine[]) : []).map((sample, index) => {
    const tokens = numbersOf(sample["tokens"]);
    const logprobs = numbersOf(sample["logprobs"]);
    const hasLogprobs = logprobs.length === tokens.length && tokens.length > 0;
    const before = <T>(value: T): T[] => prompt.map(() => value);
    const sum = logprobs.reduce((total, one) => total + one, 0);
    return {
      split: typeof purpose === "string" ? purpose : "samples",
      at: (toNumber(at) ?? 0) * 1000,
      raw: { ...rest, ...sample },
      head: {
        group: toNumber(scope["group_idx"]) ?? null,
        index: toNumber(scope["traj_idx"]) ?? index,
        reward: null,
        advantage: null,
        nll: hasLogprobs ? toPlain(-sum / tokens.length) : null,
        tokenCount: prompt.length + tokens.length,
        trainedCount: tokens.length,
        stopReason:
          typeof sample["stop_reason"] === "string"
            ? sample["stop_reason"].replace(/^StopReason\./, "").toLowerCase()
            : null,
      },
      content: {
        columns: {
          tokens: [...prompt, ...tokens],
          mask: [...before(0), ...tokens.map(() => 1)],
          ...(hasLogprobs ? { samplerLogprob: [...before(Number.NaN), ...logprobs] } : {}),
        },
        extra: { model: row["model_path"] ?? base },
      },
    };
  });
}

/** Conversations of a log tree, in order. Where `data` is present it says what the markup shows. */
function conversationsOf(tree: JsonLine | undefined): StudioMessage[][] {
  const found: StudioMessage[][] = [];
  const walk = (node: unknown, depth: number): void => {
    if (typeof node !== "object" || node === null || depth > 200) return;
    const { data, children } = node as { data?: JsonLine; children?: unknown };
    if (data?.["type"] === "conversation" && Array.isArray(data["messages"])) {
      found.push((data["messages"] as JsonLine[]).map(toMessage));
      return;
    }
    if (Array.isArray(children)) for (const child of children) walk(child, depth + 1);
  };
  walk(tree?.["root"], 0);
  return found;
}

/** A message as text: thinking and tool calls in their markup, what is not known as it is. */
function toMessage(message: JsonLine): StudioMessage {
  const { role, content, tool_calls: calls, trainable: _, token_count: __, ...rest } = message;
  const parts = Array.isArray(content) ? (content as unknown[]).map(partText) : [textOf(content)];
  const called = Array.isArray(calls) ? (calls as unknown[]).map(callText) : [];
  const others = Object.entries(rest).filter(([, value]) => value !== null && !isEmpty(value));
  const more = others.length === 0 ? [] : [JSON.stringify(Object.fromEntries(others))];
  return {
    role: typeof role === "string" ? role : "unknown",
    content: [...parts, ...called, ...more].filter((part) => part !== "").join("\n"),
  };
}

function partText(part: unknown): string {
  if (typeof part !== "object" || part === null) return textOf(part);
  const { type, text, thinking, tool_call: call, raw_text: raw } = part as JsonLine;
  if (type === "text" && typeof text === "string") return text;
  if (type === "thinking" && typeof thinking === "string") return `<think>\n${thinking}\n</think>`;
  if (type === "tool_call") return callText(call);
  if (type === "unparsed_tool_call" && typeof raw === "string") return raw;
  return JSON.stringify(part);
}

function callText(call: unknown): string {
  const { function: called } = (call ?? {}) as { function?: JsonLine };
  return `<tool_call>\n${textOf(called ?? call)}\n</tool_call>`;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value ?? "") ?? "");
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function logsOf(logs: unknown): string[] {
  return Object.entries(logs ?? {}).map(([key, value]) => `${key}: ${String(value)}`);
}

async function benchmarksOf(files: RunFiles): Promise<string[]> {
  const found: string[] = [];
  for (const name of await files.names()) {
    const file = await files.find(`${name}/trajectories.jsonl`).catch(() => undefined);
    if (file) found.push(name);
  }
  return found;
}

function stepOfSample(line: JsonLine): number {
  return toNumber((line["scope"] as JsonLine | undefined)?.["iteration"]) ?? 0;
}

function numbersOf(value: unknown): number[] {
  if (!Array.isArray(value)) return [];
  return value.map((one) => toNumber(one) ?? Number.NaN);
}

function plainOrNull(value: unknown): ExhibitHead["reward"] {
  const number = toNumber(value);
  return number === undefined ? null : toPlain(number);
}
