import os from "node:os";
import { parentPort } from "node:worker_threads";
import type { Tokenizer } from "@tinker-ts/hub";
import { decodeProto, encodeJson, stringifyJson, type WireValue } from "tinker-ts/wire";
import { ApiError } from "../errors/api-error.js";
import { DamagedError } from "../errors/damaged-error.js";
import { readPayload } from "../store/content.js";
import { answerGrammar, type AnswerShape } from "../structure/answer-grammar.js";
import { SchemaRefusal } from "../structure/schema-refusal.js";
import { encodeChatText } from "./chat-text.js";
import { type BodyForm, checkSize, decodeBody, joined, readJson } from "./decode-body.js";
import { decodePass, inSharedMemory, type ReceivedPass } from "./engine-pass.js";
import { InvalidBody } from "./invalid-body.js";
import type { FlatSample, WorkerAnswer, WorkerRequest, WorkerTask } from "./messages.js";
import type { MadeGrammar } from "./workers.js";

/* The program of a worker, which runs one task at a time. */

const port = parentPort;
if (!port) throw new Error("this file is the program of a thread");

/** How much later than others a worker gets a core that all of them want; 19 is most. */
const niceness = 5;

// Linux alone has priorities of threads; elsewhere they belong to whole processes.
if (process.platform === "linux") {
  try {
    os.setPriority(0, Math.min(19, os.getPriority(0) + niceness));
  } catch {
    // A sandbox may forbid it. The tasks are done all the same.
  }
}

port.on("message", ({ id, task }: WorkerRequest) => {
  run(task).then(
    (value) => port.postMessage({ id, kind: "value", value } satisfies WorkerAnswer, owned(value)),
    (error: unknown) => port.postMessage({ id, ...refusal(error) } satisfies WorkerAnswer),
  );
});

async function run(task: WorkerTask): Promise<unknown> {
  switch (task.kind) {
    case "body":
      return body(task.parts, task.form);
    case "json":
      return readJson(joined(task.parts), task.form);
    case "pass":
      return inSharedMemory(decodePass(await readPayload(task.payload)));
    case "result": {
      const { typeName, bytes } = task;
      return Buffer.from(
        stringifyJson(encodeJson(typeName, decodeProto(typeName, bytes) as never)),
      );
    }
    case "texts": {
      const { texts, addSpecialTokens } = task;
      const tokenizer = await tokenizerOf(task.folder);
      return texts.map((text) => tokenizer.encode(text, { addSpecialTokens }));
    }
    case "grammar":
      return grammar(task.shape);
    case "chat":
      return encodeChatText(await (await tokenizerOf(task.folder)).chatTemplate(), task.chat);
  }
}

function grammar(shape: AnswerShape): MadeGrammar {
  try {
    return { grammar: JSON.stringify(answerGrammar(shape)) };
  } catch (error) {
    if (error instanceof SchemaRefusal) return { problem: error.message };
    // Schemas inside schemas are followed by calls inside calls.
    if (error instanceof RangeError)
      return { problem: "the schema is too complex; make it simpler" };
    throw error;
  }
}

/** The tokenizer that was used last: others are loaded again. */
let last: { readonly folder: string; readonly tokenizer: Tokenizer } | undefined;

async function tokenizerOf(folder: string): Promise<Tokenizer> {
  if (last?.folder === folder) return last.tokenizer;
  last = undefined;
  const { loadTokenizer } = await import("@tinker-ts/hub");
  last = { folder, tokenizer: await loadTokenizer(folder) };
  return last.tokenizer;
}

async function body(parts: readonly Uint8Array[], form: BodyForm): Promise<unknown> {
  const { value, ignored } = await decodeBody(joined(parts), form);
  if (isPass(value)) return { value, ignored };
  checkSize(value);
  if (form.typeName !== "SampleRequest") return { value, ignored };
  // Objects of classes do not survive the way between threads.
  const { prompt, ...rest } = value as WireValue<"SampleRequest">;
  const flat: FlatSample = { ...rest, prompt: prompt.chunks };
  return { value: flat, ignored };
}

function isPass(value: unknown): value is ReceivedPass {
  return typeof value === "object" && value !== null && "payload" in value;
}

/** Memory of a result that is given away instead of being copied: bytes that are alone in it. */
function owned(result: unknown): ArrayBuffer[] {
  const value = (result as { readonly value?: unknown } | undefined)?.value;
  const bytes = isPass(value) ? value.payload : result;
  if (!(bytes instanceof Uint8Array && bytes.buffer instanceof ArrayBuffer)) return [];
  return bytes.buffer.byteLength === bytes.byteLength ? [bytes.buffer] : [];
}

function refusal(error: unknown) {
  if (error instanceof InvalidBody) {
    return { kind: "invalid", message: error.message, place: error.place } as const;
  }
  if (error instanceof ApiError) {
    return { kind: "refused", status: error.status, message: error.message } as const;
  }
  if (error instanceof DamagedError) {
    return { kind: "damaged", file: error.file, problem: error.problem } as const;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { kind: "broken", error: text } as const;
}
