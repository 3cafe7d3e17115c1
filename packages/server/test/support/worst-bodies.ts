import { compressZstd, encodeProto } from "tinker-ts/wire";

/** A body that costs its receiver as much as it can. */
export interface WorstBody {
  readonly name: string;
  /** The endpoint, from `/api/v1/`. */
  readonly path: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly headers: Readonly<Record<string, string>>;
}

const json = { "content-type": "application/json" };
const proto = { "content-type": "application/x-protobuf" };
const zstd = { "content-encoding": "zstd" };

/** A short schema in which every level says the one below it twice, in a way that cannot be shared. */
export function unfoldingSchema(levels: number): object {
  const again = (level: number) => ({ $ref: `#/$defs/level${level}`, type: "object" });
  const definitions = Array.from({ length: levels }, (_, level) => {
    const properties = level === 0 ? {} : { a: again(level - 1), b: again(level - 1) };
    return [`level${level}`, { type: "object", properties }] as const;
  });
  return { $defs: Object.fromEntries(definitions), ...again(levels - 1) };
}

/** The worst that one key may send, within the default limits; `scale` makes the large ones smaller. */
export async function worstBodies(
  modelId: string,
  baseModel: string,
  scale = 1,
): Promise<WorstBody[]> {
  const megabytes = (count: number): number => Math.floor(count * scale * 1e6);
  const pass = (data: string): Uint8Array<ArrayBuffer> =>
    Buffer.from(
      `{"model_id":${JSON.stringify(modelId)},"forward_backward_input":{"data":${data},"loss_fn":"cross_entropy"}}`,
    );
  const list = (item: string, sizeBytes: number): string =>
    `[${`${item},`.repeat(Math.floor(sizeBytes / (item.length + 1)))}${item}]`;
  const each = (count: number, item: (n: number) => string): string =>
    `[${Array.from({ length: count }, (_, n) => item(n)).join(",")}]`;
  const tokens = new Int32Array(2000).fill(1);
  const rows = Math.max(1, Math.floor(4096 * scale));
  const whole = encodeProto("ForwardBackwardRequest", {
    modelId,
    forwardBackwardInput: {
      data: Array.from({ length: rows }, () => ({
        modelInput: tokens,
        lossFnInputs: { target_tokens: tokens, weights: new Float32Array(2000).fill(1) },
      })),
      lossFn: "cross_entropy",
    },
  });
  const zipped = async (bytes: Uint8Array) =>
    (await compressZstd(bytes)) as Uint8Array<ArrayBuffer>;
  const spaces = await zipped(Buffer.alloc(megabytes(250), " "));
  const inputs = `{"target_tokens":{"data":[1],"dtype":"int64"}}`;
  const long = `[{"model_input":{"chunks":[{"tokens":${list("1", megabytes(100))}}]},"loss_fn_inputs":${inputs}}]`;
  const prompt = `{"base_model":"none","prompt":{"chunks":[{"tokens":${list("1", 4e6)}}]},"sampling_params":{}}`;
  const sampleWith = (params: string): Uint8Array<ArrayBuffer> =>
    Buffer.from(
      `{"base_model":${JSON.stringify(baseModel)},"prompt":{"chunks":[{"type":"encoded_text","tokens":[1]}]},"sampling_params":{"max_tokens":1,${params}}}`,
    );
  const named = (n: number): string => `{"k${n}":1}`;
  const strings = (sizeBytes: number) => list('""', sizeBytes);
  const session = `{"tags":${strings(190_000)},"user_metadata":{},"sdk_version":"x"}`;
  // No two letters that are often together, which is what makes tokens of a text slowly.
  const letters = Buffer.from(Array.from({ length: megabytes(1) }, (_, n) => 97 + ((n * n) % 25)));
  const question = `{"model":${JSON.stringify(baseModel)},"max_tokens":1,`;
  const demand = (schema: unknown): Uint8Array<ArrayBuffer> =>
    Buffer.from(
      `${question}"messages":[{"role":"user","content":"x"}],"response_format":${JSON.stringify({
        type: "json_object",
        schema,
      })}}`,
    );
  const fields = Array.from({ length: 4300 }, (_, n) => [`field${n}`, { type: "string" }]);
  const path = "forward_backward";
  return [
    { name: "spaces, compressed", path, bytes: spaces, headers: { ...json, ...zstd } },
    { name: "one long JSON datum", path, bytes: pass(long), headers: json },
    { name: "a pass of 130 MB", path, bytes: whole, headers: proto },
    {
      name: "the same, compressed",
      path,
      bytes: await zipped(whole),
      headers: { ...proto, ...zstd },
    },
    { name: "millions of empty data", path, bytes: pass(list("{}", megabytes(60))), headers: json },
    { name: "nested lists", path, bytes: pass("[".repeat(megabytes(60))), headers: json },
    { name: "a long prompt", path: "asample", bytes: Buffer.from(prompt), headers: json },
    {
      name: "a sample with very many ends",
      path: "asample",
      bytes: sampleWith(`"stop":${list('"a"', 39e5)}`),
      headers: json,
    },
    {
      name: "a sample with objects for options",
      path: "asample",
      bytes: sampleWith(`"extensions":{"x":${list("{}", 39e5)}}`),
      headers: json,
    },
    {
      name: "a long text",
      path: "../../v1/completions",
      bytes: Buffer.from(`${question}"prompt":"${letters.toString()}"}`),
      headers: json,
    },
    {
      name: "lists in lists of a chat",
      path: "../../v1/chat/completions",
      bytes: Buffer.from(`${question}"messages":${"[".repeat(2e6)}${"]".repeat(2e6)}}`),
      headers: json,
    },
    {
      name: "numbers of a completion",
      path: "../../v1/completions",
      bytes: Buffer.from(`${question}"prompt":${list("1", 4e6)}}`),
      headers: json,
    },
    {
      name: "as many numbers as are taken",
      path: "../../v1/completions",
      bytes: Buffer.from(`${question}"prompt":${list("1", 599e3)}}`),
      headers: json,
    },
    {
      name: "as many empty messages",
      path: "../../v1/chat/completions",
      bytes: Buffer.from(`${question}"messages":${list("{}", 175e3)}}`),
      headers: json,
    },
    {
      name: "messages of different names",
      path: "../../v1/chat/completions",
      bytes: Buffer.from(`${question}"messages":${each(29e3, named)}}`),
      headers: json,
    },
    {
      name: "as many of them as are taken",
      path: "../../v1/chat/completions",
      bytes: Buffer.from(`${question}"messages":${each(5200, named)}}`),
      headers: json,
    },
    {
      name: "as many texts as are taken",
      path: "../../v1/completions",
      bytes: Buffer.from(`${question}"prompt":${each(28e3, (n) => `"${n.toString(36)}"`)}}`),
      headers: json,
    },
    {
      name: "as many names of an object as are taken",
      path: "../../v1/completions",
      bytes: Buffer.from(`${question}"prompt":{${each(5500, (n) => `"k${n}":1`).slice(1, -1)}}}`),
      headers: json,
    },
    {
      name: "a sample with options of many names",
      path: "asample",
      bytes: sampleWith(`"extensions":{${each(29e4, (n) => `"k${n}":1`).slice(1, -1)}}`),
      headers: json,
    },
    {
      name: "as many of those as are taken",
      path: "asample",
      bytes: sampleWith(`"extensions":{${each(9900, (n) => `"k${n}":1`).slice(1, -1)}}`),
      headers: json,
    },
    {
      name: "a long list in a log",
      path: "logs",
      bytes: Buffer.from(each(349e3, (n) => `${n}.5`)),
      headers: json,
    },
    {
      name: "short lists in a log",
      path: "logs",
      bytes: Buffer.from(`${each(1900, () => each(52, (n) => `${n}.5`))}\n`.repeat(8)),
      headers: json,
    },
    {
      name: "names in a log",
      path: "logs",
      bytes: Buffer.from(`${each(10_500, named)}\n`.repeat(22)),
      headers: json,
    },
    {
      name: "a long text of other letters",
      path: "../../v1/completions",
      bytes: Buffer.from(`${question}"prompt":"${"ж".repeat(megabytes(2))}"}`),
      headers: json,
    },
    {
      name: "a schema of many fields",
      path: "../../v1/chat/completions",
      bytes: demand({ type: "object", properties: Object.fromEntries(fields) }),
      headers: json,
    },
    {
      name: "a schema without end",
      path: "../../v1/chat/completions",
      bytes: demand(unfoldingSchema(40)),
      headers: json,
    },
    { name: "empty lines of a log", path: "logs", bytes: Buffer.alloc(4e6, "\n"), headers: json },
    {
      name: "metadata of many objects",
      path: "create_session",
      bytes: Buffer.from(`{"tags":[],"user_metadata":{"a":${list("{}", 19e4)}},"sdk_version":"x"}`),
      headers: json,
    },
    { name: "many tags", path: "create_session", bytes: Buffer.from(session), headers: json },
    {
      name: "telemetry",
      path: "telemetry",
      bytes: Buffer.from(`{"events":${list("{}", 1e6)},"session_id":"x"}`),
      headers: json,
    },
  ];
}
