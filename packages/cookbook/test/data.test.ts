import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  ConversationDataset,
  conversationToData,
  interleave,
  loadConversations,
  splitTest,
  StreamingDataset,
  streamConversations,
  toConversation,
  toDatum,
  weightsOf,
  type Conversation,
} from "@tinker-ts/cookbook/data";
import type { Message } from "@tinker-ts/cookbook/renderers";
import fc from "fast-check";
import { parquetWriteBuffer } from "hyparquet-writer";
import { ModelInput, type Datum } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wordRenderer } from "./support/word-renderer.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-data-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, content: string | Uint8Array): string {
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
}

const exchange = (asked: string, answered: string): Conversation => ({
  messages: [
    { role: "user", content: asked },
    { role: "assistant", content: answered },
  ],
});
const tokensOf = (data: readonly Datum[]): number[][] =>
  data.map(({ modelInput }) => [...modelInput.toInts()]);

describe("forms of rows", () => {
  const wanted = exchange("2 + 2?", "4");
  it.each([
    ["messages", { messages: wanted.messages }],
    [
      "ShareGPT",
      {
        conversations: [
          { from: "human", value: "2 + 2?" },
          { from: "gpt", value: "4" },
        ],
      },
    ],
    ["Alpaca", { instruction: "2 + 2?", input: "", output: "4" }],
    ["prompt and completion", { prompt: "2 + 2?", completion: "4" }],
    [
      "prompt and completion as messages",
      { prompt: [wanted.messages[0]], completion: [wanted.messages[1]] },
    ],
    ["question and answer", { question: "2 + 2?", answer: "4" }],
  ])("%s", (_, row) => {
    expect(toConversation(row)).toEqual(wanted);
  });

  it("Alpaca's input follows the instruction, after a system text", () => {
    const { messages } = toConversation({
      system: "Be brief.",
      instruction: "Add",
      input: "2, 2",
      output: "4",
    });
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ["system", "Be brief."],
      ["user", "Add\n\n2, 2"],
      ["assistant", "4"],
    ]);
  });

  it("OpenAI's files: weights select the trained answers, tools and calls are read", () => {
    const { messages, tools } = toConversation({
      messages: [
        { role: "user", content: [{ type: "text", text: "hi" }] },
        { role: "assistant", content: "no", weight: 0 },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "c", type: "function", function: { name: "f", arguments: '{"a":1}' } },
          ],
        },
        { role: "tool", tool_call_id: "c", content: "1" },
        { role: "assistant", content: "yes", reasoning_content: "hm", weight: 1 },
      ],
      tools: [
        {
          type: "function",
          function: { name: "f", description: "d", parameters: { type: "object" } },
        },
      ],
    });
    expect(messages.map(({ trainable }) => trainable)).toEqual([false, false, true, false, true]);
    expect(messages[2]?.toolCalls).toEqual([
      { id: "c", function: { name: "f", arguments: '{"a":1}' } },
    ]);
    expect(messages[3]?.toolCallId).toBe("c");
    expect(messages[4]?.content).toEqual([
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "yes" },
    ]);
    expect(tools).toEqual([{ name: "f", description: "d", parameters: { type: "object" } }]);
  });

  it.each([
    [{ text: "x", id: 1 }, "unknown row format"],
    [{ text: "x", id: 1 }, "with the fields text, id"],
    [{ messages: [{ role: "user" }] }, "messages[0].content: expected text, got nothing"],
    [
      { messages: [{ content: "x" }] },
      'messages[0].role: expected text such as "user", got nothing',
    ],
    [{ messages: [] }, "messages: empty list"],
    [
      { messages: [{ role: "user", content: "x", weight: 0.5 }] },
      "messages[0].weight: must be 0 or 1",
    ],
    [{ conversations: [{ from: "me", value: "x" }] }, "conversations[0].from"],
    [{ prompt: 3, completion: "x" }, "prompt: expected text, got a number"],
    [[1], "expected an object, got a list"],
  ])("%j is refused", (row, problem) => {
    expect(() => toConversation(row)).toThrow(problem);
  });
});

describe("files", () => {
  const rows = [
    { prompt: "a", completion: "b, c" },
    { prompt: 'd "e"\nf', completion: "g\u2028h" },
  ];
  const parquet = (): Uint8Array =>
    new Uint8Array(
      parquetWriteBuffer({
        columnData: [
          { name: "prompt", data: rows.map(({ prompt }) => prompt) },
          { name: "completion", data: rows.map(({ completion }) => completion) },
        ],
      }),
    );
  it.each<[string, () => string | Uint8Array]>([
    ["rows.jsonl", () => rows.map((row) => JSON.stringify(row)).join("\n")],
    ["bom.jsonl", () => `\uFEFF${rows.map((row) => `${JSON.stringify(row)}\r\n`).join("\n")}`],
    ["rows.json", () => JSON.stringify(rows)],
    ["object.json", () => JSON.stringify({ version: 1, data: rows })],
    ["rows.csv", () => 'prompt,completion\na,"b, c"\n"d ""e""\nf",g\u2028h\n'],
    ["rows.tsv", () => 'prompt\tcompletion\na\tb, c\n"d ""e""\nf"\tg\u2028h\n'],
    ["rows.parquet", parquet],
  ])("%s has the same conversations", async (name, content) => {
    const { conversations } = await loadConversations(write(name, content()));
    expect(conversations.map(({ messages }) => messages.map(({ content: text }) => text))).toEqual(
      rows.map(({ prompt, completion }) => [prompt, completion]),
    );
  });

  it("custom rows are read the same way, with a custom mapping", async () => {
    async function* own(): AsyncGenerator<{ q: string; a: string }> {
      yield { q: "x", a: "y" };
      yield { q: "skip", a: "" };
    }
    const { conversations } = await loadConversations(own(), {
      map: (row: { q: string; a: string }) => (row.a === "" ? undefined : exchange(row.q, row.a)),
    });
    expect(conversations).toEqual([{ ...exchange("x", "y"), place: "row 1" }]);
  });

  it("bad rows are named with file, line and field; they can be skipped", async () => {
    const good = JSON.stringify(rows[0]);
    const file = write(
      "bad.jsonl",
      `${good}\n{"prompt": 1, "completion": ""}\n\n{oops\n${good}\n[]\n"x"\n`,
    );
    await expect(loadConversations(file)).rejects.toThrow(
      /^bad\.jsonl:2: prompt: expected text, got a number; bad\.jsonl:4: invalid JSON: .*; bad\.jsonl:6: expected an object, got a list; and 1 more bad rows$/,
    );
    const { conversations, badRows } = await loadConversations(file, { badRows: "skip" });
    expect(conversations.map(({ place }) => place)).toEqual(["bad.jsonl:1", "bad.jsonl:5"]);
    expect(badRows.map(({ place }) => place)).toEqual([
      "bad.jsonl:2",
      "bad.jsonl:4",
      "bad.jsonl:6",
      "bad.jsonl:7",
    ]);
  });

  it.each<[string, string | Uint8Array, string]>([
    [
      "utf16.jsonl",
      Buffer.from(`\uFEFF${JSON.stringify(rows[0])}`, "utf16le"),
      "utf16.jsonl: UTF-16 text; save the file as UTF-8",
    ],
    [
      "latin1.csv",
      Buffer.from("prompt,completion\né,b\n", "latin1"),
      "latin1.csv: not UTF-8; save the file as UTF-8",
    ],
    ["empty.jsonl", "", "empty.jsonl: no conversations found"],
    ["number.json", "3", "number.json: expected a list of rows, or an object with one list"],
    ["broken.json", "[", "broken.json: invalid JSON"],
    ["not.parquet", "PAR1 no", "not.parquet: invalid Parquet"],
    ["data.xml", "<a/>", "data.xml: unknown file type; expected one of .jsonl"],
  ])("%s is one clear error", async (name, content, message) => {
    await expect(loadConversations(write(name, content))).rejects.toThrow(message);
  });

  it("a missing file is an error, too", async () => {
    await expect(loadConversations(path.join(folder, "no.jsonl"))).rejects.toThrow(
      "no.jsonl: no such file",
    );
  });
});

it("data sets of the hub are read file by file, from the cache if present", async () => {
  const home = path.join(folder, "hf");
  const repository = path.join(home, "hub", "datasets--tiny--talks");
  const snapshot = path.join(repository, "snapshots", "a".repeat(40), "data");
  mkdirSync(snapshot, { recursive: true });
  mkdirSync(path.join(repository, "refs"), { recursive: true });
  writeFileSync(path.join(repository, "refs", "main"), "a".repeat(40));
  for (const [part, prompt] of ["a", "b"].entries()) {
    const columnData = [
      { name: "prompt", data: [prompt] },
      { name: "completion", data: ["x"] },
    ];
    const file = path.join(snapshot, `test-0000${part}-of-00002.parquet`);
    writeFileSync(file, new Uint8Array(parquetWriteBuffer({ columnData })));
  }
  const env = { HF_HOME: home, HF_HUB_OFFLINE: "1" };
  const { conversations } = await loadConversations("hf:tiny/talks:test", { hub: { env } });
  expect(conversations.map(({ messages, place }) => [messages[0]?.content, place])).toEqual([
    ["a", "test-00000-of-00002.parquet row 1"],
    ["b", "test-00001-of-00002.parquet row 1"],
  ]);
  const missing = loadConversations("hf:tiny/others", { hub: { env } });
  await expect(missing).rejects.toThrow("tiny/others is not in the cache");
});

describe("datums", () => {
  it("have weights that add up to 1 with the reduction `mean`, regardless of cuts", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ id: fc.nat(99), weight: fc.constantFrom(0, 0.5, 1) }), {
          minLength: 2,
        }),
        fc.integer({ min: 2, max: 12 }),
        (positions, maxLength) => {
          const datum = toDatum(
            {
              input: ModelInput.fromInts(positions.map(({ id }) => id)),
              weights: Float32Array.from(positions, ({ weight }) => weight),
            },
            { maxLength },
          );
          const kept = Math.min(positions.length, maxLength) - 1;
          expect(datum.modelInput.length).toBe(kept);
          const sum = Array.from(weightsOf(datum)).reduce((total, weight) => total + weight, 0);
          const isLearned = positions.slice(1, kept + 1).some(({ weight }) => weight > 0);
          expect(sum).toBeCloseTo(isLearned ? 1 : 0, 5);
        },
      ),
    );
  });

  it("use the flags of messages if there are any, and their tools", () => {
    const renderer = wordRenderer();
    const [datum] = conversationToData(
      {
        messages: [
          { role: "user", content: "a" },
          { role: "assistant", content: "b" },
          { role: "assistant", content: "c", trainable: true },
        ],
        tools: [{ name: "f", description: "", parameters: {} }],
      },
      { renderer, reduction: "none" },
    );
    expect(Array.from(weightsOf(datum!))).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
  });
});

it("a conversation of a format that rewrites earlier turns is one datum per answer; a batch counts rows", () => {
  const renderer = wordRenderer();
  const rewriting = {
    ...renderer,
    hasExtensionProperty: false,
    buildSupervisedExamples: (messages: readonly Message[]) =>
      messages.flatMap((message, index) =>
        message.role === "assistant"
          ? renderer.buildSupervisedExample(messages.slice(0, index + 1))
          : [],
      ),
  };
  const talk = { messages: [...exchange("a", "b").messages, ...exchange("c", "d").messages] };
  const data = new ConversationDataset([talk, talk, talk], { renderer: rewriting, batchSize: 2 });
  expect(data.batchesPerEpoch).toBe(1);
  expect(data.batch(0, 0)).toHaveLength(4);
});

describe("batches", () => {
  const conversations = Array.from({ length: 11 }, (_, index) =>
    exchange(`q${index}`, `a${index}`),
  );
  const dataset = (options = {}) =>
    new ConversationDataset(conversations, {
      renderer: wordRenderer(new Map()),
      batchSize: 3,
      ...options,
    });
  const epochOf = (data: ConversationDataset, epoch: number): string[] =>
    Array.from({ length: data.batchesPerEpoch }, (_, index) =>
      JSON.stringify(tokensOf(data.batch(epoch, index))),
    );

  it("drop rows that do not fill a batch, and use every row at most once", () => {
    const data = dataset();
    for (let row = 0; row < 11; row++) data.row(row);
    expect(data.batchesPerEpoch).toBe(3);
    const rows = [0, 1, 2].flatMap((index) => tokensOf(data.batch(0, index)).map(String));
    expect(new Set(rows).size).toBe(9);
  });

  it("depend on seed, epoch and number alone, in any order of requests", () => {
    const vocabulary = new Map<string, number>();
    const make = (seed: number) =>
      new ConversationDataset(conversations, {
        renderer: wordRenderer(vocabulary),
        batchSize: 3,
        seed,
      });
    const forwards = [0, 1, 2].map((epoch) => epochOf(make(5), epoch));
    const other = make(5);
    const backwards = [2, 1, 0].map((epoch) => epochOf(other, epoch)).toReversed();
    expect(backwards).toEqual(forwards);
    expect(new Set(forwards.map(String)).size).toBe(3);
    expect(epochOf(make(6), 0)).not.toEqual(forwards[0]);
  });

  it("keep the order of rows on request", () => {
    const data = dataset({ shuffle: false });
    expect(epochOf(data, 0)).toEqual(epochOf(data, 1));
  });

  it("are refused if there are fewer rows than the batch size", () => {
    expect(() => dataset({ batchSize: 12 })).toThrow(
      "batchSize: 12 exceeds the number of rows (11)",
    );
    expect(() => dataset({ batchSize: 0 })).toThrow("batchSize");
  });

  it("can be inspected before training", () => {
    const data = new ConversationDataset(
      [
        exchange("a", "b c"),
        { ...exchange("d", "e f g h"), place: "x.jsonl:2" },
        { messages: [{ role: "user", content: "only this" }], place: "x.jsonl:3" },
      ],
      { renderer: wordRenderer(), batchSize: 1, maxLength: 7 },
    );
    expect(data.inspect()).toEqual({
      rows: 3,
      data: 3,
      tokens: 6 + 6 + 3,
      trainedTokens: 3 + 3,
      longest: 9,
      truncatedRows: 1,
      badRows: [
        {
          place: "x.jsonl:3",
          problem: 'no answer to learn: no message has the role "assistant", only user',
        },
      ],
    });
  });

  it("name a row that cannot be rendered", () => {
    const data = new ConversationDataset(
      [{ messages: [{ role: "user", content: [] }], place: "y:1" }],
      {
        renderer: wordRenderer(),
        batchSize: 1,
      },
    );
    expect(() => data.batch(0, 0)).toThrow("y:1: ");
    expect(data.inspect().badRows[0]?.place).toBe("y:1");
  });
});

it("a test split is drawn by a separate shuffle and leaves the rest", () => {
  const rows = Array.from({ length: 20 }, (_, index) => index);
  const { train, test } = splitTest(rows, 5);
  expect(test).toHaveLength(5);
  expect([...train, ...test].toSorted((a, b) => a - b)).toEqual(rows);
  expect(splitTest(rows, 5)).toEqual({ train, test });
  expect(splitTest(rows, 0)).toEqual({ train: rows, test: [] });
  expect(() => splitTest(rows, 20)).toThrow(
    "testSize: 20 leaves no row to train on; the number of rows is 20",
  );
});

describe("mixing sources", () => {
  const a = { rows: Array.from({ length: 30 }, (_, index) => `a${index}`) };
  const b = { rows: ["b0", "b1", "b2"] };
  const count = (mixed: readonly string[], source: string) =>
    mixed.filter((row) => row.startsWith(source)).length;

  it("ends when every source is exhausted, with small ones repeating", () => {
    const mixed = interleave([
      { ...a, weight: 1 },
      { ...b, weight: 1 },
    ]);
    expect(new Set(mixed).size).toBe(33);
    expect(count(mixed, "b")).toBeGreaterThan(10);
  });

  it("ends with the first source, or with every row drawn once", () => {
    expect(new Set(interleave([a, b], { stopping: "first_exhausted" })).size).toBeLessThan(33);
    const all = interleave(
      [
        { ...a, weight: 1 },
        { ...b, weight: 5 },
      ],
      { stopping: "all_exhausted_without_replacement" },
    );
    expect(all.toSorted()).toEqual([...a.rows, ...b.rows].toSorted());
  });

  it("draws by weight, or by the number of rows, and always the same", () => {
    const long = (source: string) => ({
      rows: Array.from({ length: 2000 }, (_, index) => `${source}${index}`),
    });
    const mixed = interleave(
      [
        { ...long("a"), weight: 3 },
        { ...long("b"), weight: 1 },
      ],
      { stopping: "first_exhausted" },
    );
    expect(count(mixed, "a") / mixed.length).toBeCloseTo(0.75, 1);
    expect(interleave([a, b], { seed: 4 })).toEqual(interleave([a, b], { seed: 4 }));
    expect(interleave([a, b], { seed: 4 })).not.toEqual(interleave([a, b], { seed: 5 }));
  });

  it("refuses weights for some sources only, and sources without rows", () => {
    expect(() => interleave([{ ...a, weight: 1 }, b])).toThrow("weight");
    expect(() => interleave([{ rows: [] }])).toThrow("sources[0].rows: has no rows");
  });
});

describe("streams", () => {
  const lines = Array.from({ length: 40 }, (_, index) =>
    JSON.stringify({ prompt: `q${index}`, completion: "a" }),
  );
  const stream = (options = {}) => {
    const file = path.join(folder, "stream.jsonl");
    writeFileSync(file, lines.join("\n"));
    return new StreamingDataset({
      renderer: wordRenderer(
        new Map(Array.from({ length: 40 }, (_, index) => [`q${index}`, index])),
      ),
      batchSize: 4,
      batchesPerEpoch: 10,
      bufferSize: 8,
      open: async function* () {
        for await (const entry of streamConversations(file)) if ("messages" in entry) yield entry;
      },
      ...options,
    });
  };
  const rowsOf = async (data: StreamingDataset, epoch: number, index: number): Promise<number[]> =>
    tokensOf(await data.batch(epoch, index)).map((tokens) => tokens[1]!);

  it("give every row once, mixed within the buffer, in another order each epoch", async () => {
    const data = stream();
    const epochs: number[][] = [];
    for (const epoch of [0, 1]) {
      const rows: number[] = [];
      for (let index = 0; index < 10; index++) rows.push(...(await rowsOf(data, epoch, index)));
      epochs.push(rows);
      expect(rows.toSorted((a, b) => a - b)).toEqual(lines.map((_, index) => index));
    }
    expect(epochs[0]).not.toEqual(epochs[1]);
  });

  it("resume exactly at any batch, also at an earlier one", async () => {
    const calm = stream();
    const wanted: number[][] = [];
    for (let index = 0; index < 10; index++) wanted.push(await rowsOf(calm, 3, index));
    expect(await rowsOf(stream(), 3, 6)).toEqual(wanted[6]);
    expect(await rowsOf(calm, 3, 2)).toEqual(wanted[2]);
  });

  it("that end early give an error", async () => {
    await expect(stream({ batchesPerEpoch: 11 }).batch(0, 10)).rejects.toThrow(
      "batchesPerEpoch: the stream ended after 10 of 11 batches",
    );
  });
});
