import { parentPort } from "node:worker_threads";
import { decodeProto, encodeJson, stringifyJson, type WireValue } from "tinker-ts/wire";
import type { Tokenizer } from "@tinker-ts/hub";
import { ApiError } from "../errors/api-error.js";
import { DamagedError } from "../errors/damaged-error.js";
import { readPayload } from "../store/payloads.js";
import { answerGrammar, type AnswerShape } from "../structure/answer-grammar.js";
import { SchemaRefusal } from "../structure/schema-refusal.js";
import type { FlatSample } from "./body-decoder.js";
import { encodeChatText } from "./chat-text.js";
import { decodeBody, joined } from "./decode-body.js";
import { decodePass, inSharedMemory } from "./engine-pass.js";
import type { MadeGrammar } from "./grammars.js";
import { readJsonTexts } from "./json-text.js";
import type { ThreadAnswer, ThreadOrder, ThreadWork } from "./messages.js";
import type { ReceivedPass } from "./received-pass.js";
import { stepBack } from "./step-back.js";
import { checkValueParts } from "./value-parts.js";
import { UndecodableBody } from "./undecodable-body.js";

/* The thread that decodes what is large, one thing at a time. */

const port = parentPort;
if (!port) throw new Error("this file is the program of a thread");

port.on("message", ({ id, work }: ThreadOrder) => {
  carryOut(work).then(
    ({ value, owned }) =>
      port.postMessage({ id, kind: "value", value } satisfies ThreadAnswer, owned),
    (error: unknown) => port.postMessage({ id, ...refusal(error) } satisfies ThreadAnswer),
  );
});

/** A result, and the memory in it that is given away instead of being copied. */
interface Done {
  readonly value: unknown;
  readonly owned: ArrayBuffer[];
}

async function carryOut(work: ThreadWork): Promise<Done> {
  switch (work.kind) {
    case "body":
      stepBack();
      return body(work);
    case "json":
      return { value: readJsonTexts(joined(work.parts), work.form), owned: [] };
    case "pass":
      stepBack();
      return { value: inSharedMemory(decodePass(await readPayload(work.payload))), owned: [] };
    case "result": {
      const { typeName, bytes } = work;
      const text = stringifyJson(encodeJson(typeName, decodeProto(typeName, bytes) as never));
      return given(Buffer.from(text));
    }
    case "texts": {
      const { texts, addSpecialTokens } = work;
      const tokenizer = await tokenizerOf(work.folder);
      const value = texts.map((text) => tokenizer.encode(text, { addSpecialTokens }));
      return { value, owned: [] };
    }
    case "grammar":
      return { value: madeGrammar(work.shape), owned: [] };
    case "chat": {
      const template = await (await tokenizerOf(work.folder)).chatTemplate();
      return { value: encodeChatText(template, work.chat), owned: [] };
    }
  }
}

function madeGrammar(shape: AnswerShape): MadeGrammar {
  try {
    return { grammar: JSON.stringify(answerGrammar(shape)) };
  } catch (error) {
    if (error instanceof SchemaRefusal) return { problem: error.message };
    // Schemas inside schemas are followed by calls inside calls.
    if (error instanceof RangeError)
      return { problem: "the schema is too much to follow; make it simpler" };
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

async function body({ parts, form }: ThreadWork & { kind: "body" }): Promise<Done> {
  const { value, ignored } = await decodeBody(joined(parts), form);
  if (typeof value === "object" && value !== null && "payload" in value) {
    return { value: { value, ignored }, owned: given((value as ReceivedPass).payload).owned };
  }
  checkValueParts(value);
  if (form.typeName !== "SampleRequest") return { value: { value, ignored }, owned: [] };
  // Objects of classes do not survive the way between threads.
  const { prompt, ...rest } = value as WireValue<"SampleRequest">;
  const flat: FlatSample = { ...rest, prompt: prompt.chunks };
  return { value: { value: flat, ignored }, owned: [] };
}

/** Bytes that are alone in their memory can be given away. */
function given(bytes: Uint8Array): Done {
  const { buffer } = bytes;
  const isAlone = buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength;
  return { value: bytes, owned: isAlone ? [buffer] : [] };
}

function refusal(error: unknown) {
  if (error instanceof UndecodableBody) {
    const { message, place } = error;
    return { kind: "undecodable", message, place } as const;
  }
  if (error instanceof ApiError) {
    return { kind: "refused", status: error.status, message: error.message } as const;
  }
  if (error instanceof DamagedError) {
    const { file, problem } = error;
    return { kind: "damaged", file, problem } as const;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { kind: "broken", error: text } as const;
}
