import { Engine } from "@tinker-ts/engine";
import { Constraints } from "../../engine/src/constrain/constraints.js";
import { benchModels, createBenchModel } from "../../engine/bench/models.js";
import { checkSampleOptions } from "../../engine/src/sample/request.js";
import { RowShaper } from "../../engine/src/sample/row-shaper.js";
import { pickToken } from "../../engine/src/sample/pick-token.js";
import { schemaGrammar } from "../src/structure/json-schema.js";
import { line, median } from "./measure.js";

const vocabSize = 151_936;
const textTokens = 151_643;
const leastShare = 0.1;

const schema = {
  type: "object",
  properties: {
    name: { type: "string" },
    age: { type: "integer", minimum: 0, maximum: 150 },
    tags: { type: "array", items: { type: "string" } },
    address: {
      type: "object",
      properties: { street: { type: "string" }, zip: { type: "string", pattern: "^\\d{5}$" } },
      required: ["street", "zip"],
      additionalProperties: false,
    },
    kind: { enum: ["customer", "supplier", "friend"] },
    score: { type: "number" },
  },
  required: ["name", "age", "tags", "address", "kind", "score"],
  additionalProperties: false,
};

/**
 * What following a schema costs per token with a vocabulary of 151,643, when its masks are known, as a part
 * of a decoding step of M with a vocabulary of that size; and what the first use costs.
 */
export async function reportMasks(): Promise<void> {
  const config = { ...benchModels.M, vocabSize };
  const bytesOf = vocabulary();
  const constraints = new Constraints(vocabSize, bytesOf, new Set());
  const startedAt = performance.now();
  const constraint = constraints.get(schemaGrammar(schema), []);
  constraint.begin().mask();
  const firstUseMs = performance.now() - startedAt;
  const logits = Float32Array.from({ length: vocabSize }, () => Math.random() * 4);
  const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0);
  const probabilities = logits.map((logit) => Math.exp(logit) / sum);
  const row = { logits, probabilities, logprobs: logits, logprobSum: 0 };
  const options = checkSampleOptions(config, {
    prompt: [1],
    maxTokens: 1000,
    stopTokens: [vocabSize - 1],
  });
  const [plain, cold, warm]: number[][] = [[], [], []];
  for (let sample = 0; sample < 60; sample++) {
    const shaper = RowShaper.for(options, constraint.begin());
    for (let step = 0; step < 100; step++) {
      const began = performance.now();
      const shaped = shaper!.shape(row);
      const token = pickToken(shaped.logits, shaped.probabilities, options, Math.random);
      shaper!.push(token);
      (sample < 30 ? cold! : warm!).push(performance.now() - began);
      const unshaped = performance.now();
      pickToken(row.logits, row.probabilities, options, Math.random);
      plain!.push(performance.now() - unshaped);
      if (token === vocabSize - 1) break;
    }
  }
  const stepMs = await decodingStepMs();
  const mean = (values: readonly number[]): number =>
    values.reduce((total, value) => total + value, 0) / values.length;
  const addedMs = mean(warm!) - mean(plain!);
  line("first use of a schema", `${firstUseMs.toFixed(0)} ms for 151,643 tokens`);
  line("first masks, worst", `${Math.max(...cold!).toFixed(1)} ms`);
  line(
    "a constrained token, warm",
    `${addedMs.toFixed(2)} ms of a step of ${stepMs.toFixed(1)} ms on M`,
    {
      of: leastShare,
      is: addedMs / stepMs,
    },
  );
}

/** Decoding alone, one sequence, two threads. */
async function decodingStepMs(): Promise<number> {
  const engine = await Engine.create({ threads: 2 });
  try {
    const model = await createBenchModel(engine, "M", { vocabSize });
    const times: number[] = [];
    let before = 0;
    await model.sample({
      prompt: [1, 2, 3],
      maxTokens: 40,
      onToken: () => {
        const now = performance.now();
        if (before > 0) times.push(now - before);
        before = now;
      },
    });
    return median(times);
  } finally {
    await engine.close();
  }
}

/** Bytes of tokens as a large byte-level vocabulary has them: all bytes, words, numbers, punctuation, spaces. */
function vocabulary(): (token: number) => Uint8Array {
  let state = 7;
  const draw = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const pick = (chars: string, length: number): string =>
    Array.from({ length }, () => chars[draw(chars.length)]).join("");
  const kinds = [
    () => ` ${pick("etaoinshrdlucmfwypvbgkjqxz", 2 + draw(8))}`,
    () => ` ${pick("etaoinshrdlucmfwypvbgkjqxz", 2 + draw(8))}`,
    () => pick("etaoinshrdlucmfwypvbgkjqxz", 2 + draw(8)),
    () => pick("etaoinshrdlucmfwypvbgkjqxz", 2 + draw(8)),
    () => ` ${pick("ABCDEFGHIKLMNOPRSTUVW", 1)}${pick("etaoinshrdlu", 2 + draw(6))}`,
    () => pick("的一是不了人我在有他这中大来上国", 1 + draw(3)),
    () => pick("абвгдежзиклмнопрст", 2 + draw(5)),
    () => pick("{}[]\",:;.()<>=+-*/\\_!?#$%&'", 1 + draw(4)),
    () => `${pick('":,{}[]', 1 + draw(2))} ${pick('"{[0123', 1)}`,
    () => pick(" \n\t", 1 + draw(6)),
  ];
  const seen = new Set<string>();
  const tokens = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
  while (tokens.length < textTokens) {
    const text = kinds[draw(kinds.length)]!();
    const unique = seen.has(text) ? `${text}${pick("etaoinshr", 3)}` : text;
    seen.add(unique);
    tokens.push(Buffer.from(unique));
  }
  const nothing = new Uint8Array();
  return (token) => tokens[token] ?? nothing;
}
