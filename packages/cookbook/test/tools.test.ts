import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import {
  getRenderer,
  recommendedRenderer,
  rendererForTools,
  type Message,
  type Renderer,
  type ToolCall,
} from "@tinker-ts/cookbook/renderers";
import {
  agentic,
  rollout,
  toolEnvironment,
  type Policy,
  type ToolEpisode,
} from "@tinker-ts/cookbook/rl";
import {
  connectMcp,
  defineTool,
  runToolCalls,
  toolMetrics,
  ToolReply,
  type Tool,
} from "@tinker-ts/cookbook/tools";
import fc from "fast-check";
import { ServiceClient } from "tinker-ts";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";

const call = (name: string, args: unknown, id: string | null = "1"): ToolCall => ({
  id,
  function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
});

const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  input: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => a + b,
});

describe("a tool", () => {
  const schemas = {
    zod: z.object({ city: z.string(), days: z.number().optional() }),
    valibot: toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.number()) })),
    arktype: type({ city: "string", "days?": "number" }),
  };

  it.each(Object.entries(schemas))("accepts a schema of %s", async (_, input) => {
    const weather = defineTool({
      name: "weather",
      description: "Reports the weather.",
      input,
      run: ({ city, days = 1 }) => ({ city, days }),
    });
    expect(weather.spec.parameters).toMatchObject({
      type: "object",
      properties: { city: { type: "string" }, days: { type: "number" } },
      required: ["city"],
    });
    expect(weather.spec.parameters).not.toHaveProperty("$schema");
    const [good, bad] = await runToolCalls(
      [call("weather", { city: "Oslo" }), call("weather", { city: 5 })],
      [weather],
    );
    expect(good!.message).toEqual({
      role: "tool",
      name: "weather",
      toolCallId: "1",
      content: '{"city":"Oslo","days":1}',
    });
    expect(bad).toMatchObject({ failure: "validation_failed" });
    expect(bad!.message.content).toMatch(/city/);
  });

  it("requires parameters if the schema cannot be converted", async () => {
    const input = v.object({ city: v.string() });
    const options = { name: "weather", description: "", input, run: () => "" };
    expect(() => defineTool(options)).toThrow(/tools\.weather\.parameters: is needed: .*valibot/);
    const parameters = { type: "object", properties: { city: { type: "string" } } };
    expect(defineTool({ ...options, parameters }).spec.parameters).toBe(parameters);
  });

  it("is checked by JSON Schema if there is no other schema", async () => {
    const parameters = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const plain = defineTool({ name: "plain", description: "", parameters, run: ({ n }) => n });
    const [good, bad] = await runToolCalls(
      [call("plain", { n: 3 }), call("plain", { n: 0.5 })],
      [plain],
    );
    expect(good!.message.content).toBe("3");
    expect(bad!.message.content).toMatch(/arguments\/n must be integer/);
  });

  it("refuses an invalid name", () => {
    const parameters = { type: "object" };
    const make = (name: string): unknown =>
      defineTool({ name, description: "", parameters, run: () => "" });
    expect(() => make("a b")).toThrow(/name: must be 1 to 64 letters/);
  });
});

describe("calls", () => {
  const waits = (more: Partial<Tool> = {}): Tool => ({
    ...defineTool({
      name: "wait",
      description: "",
      parameters: { type: "object" },
      run: () => new Promise(() => {}),
    }),
    ...more,
  });
  const fails = defineTool({
    name: "fail",
    description: "",
    parameters: { type: "object" },
    run: () => {
      throw new Error("the disk is full");
    },
  });

  it.each([
    ["json_decode_failed", call("add", "{a: 1"), /not JSON/],
    ["json_decode_failed", call("add", "[1]"), /must be a JSON object/],
    ["tool_not_found", call("ad", {}), /no tool \\"ad\\". There are: add, fail, wait/],
    ["validation_failed", call("add", { a: 1 }), /b: /],
    ["execution_failed", call("fail", {}), /the disk is full/],
    ["timed_out", call("wait", {}), /wait took more than 5 ms/],
  ] as const)("%s is a result that the model can read", async (failure, wrong, text) => {
    const tools = [add, fails, waits()];
    const outcomes = await runToolCalls([wrong, call("add", { a: 1, b: 2 }, null)], tools, {
      timeoutMs: 5,
    });
    expect(outcomes[0]).toMatchObject({ failure, stops: false });
    expect(outcomes[0]!.message.content).toMatch(text);
    expect(JSON.parse(outcomes[0]!.message.content as string)).toHaveProperty("error");
    expect(outcomes[1]!.message).toEqual({ role: "tool", name: "add", content: "3" });
    expect(toolMetrics(outcomes)).toEqual({
      tool_calls: 2,
      tool_errors: 1,
      [`tool_errors/${failure}`]: 1,
    });
  });

  it("are aborted with their signal, even if the tool ignores it", async () => {
    const abort = new AbortController();
    const running = runToolCalls([call("wait", {})], [waits()], { signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
  });

  it("answer in the order of calls, at once or one by one", async () => {
    const order: number[] = [];
    let release = (): void => {};
    const first = new Promise<void>((resolve) => (release = resolve));
    const tool = defineTool({
      name: "t",
      description: "",
      parameters: { type: "object" },
      run: async ({ n }) => {
        if (n === 0) await first;
        else release();
        order.push(Number(n));
        return new ToolReply(n, { metrics: { size: Number(n) } });
      },
    });
    const outcomes = await runToolCalls([call("t", { n: 0 }), call("t", { n: 2 })], [tool]);
    expect(order).toEqual([2, 0]);
    expect(outcomes.map(({ message }) => message.content)).toEqual(["0", "2"]);
    expect(toolMetrics(outcomes)).toMatchObject({ size: 1 });
    order.length = 0;
    await runToolCalls([call("t", { n: 1 }), call("t", { n: 2 })], [tool], { isSequential: true });
    expect(order).toEqual([1, 2]);
  });

  it("cut long results, with a note", async () => {
    const long = defineTool({
      name: "long",
      description: "",
      parameters: { type: "object" },
      run: () => "x".repeat(100),
    });
    const [outcome] = await runToolCalls([call("long", {})], [long], { maxResultLength: 10 });
    expect(outcome!.message.content).toBe(`${"x".repeat(10)}… (the first 10 of 100 characters)`);
  });

  it("refuse two tools of one name", async () => {
    await expect(runToolCalls([], [add, add])).rejects.toThrow(/two of the name add/);
  });
});

describe("an MCP server in a process of its own", () => {
  const command = process.execPath;
  const args = [fileURLToPath(new URL("support/mcp-server.mjs", import.meta.url))];

  it("is a source of tools: results, errors, wrong arguments, time-outs", async () => {
    const server = await connectMcp({ command, args });
    try {
      expect(server.tools.map(({ spec }) => spec.name)).toEqual(["add", "divide", "wait"]);
      expect(server.tools[0]!.spec).toMatchObject({
        description: "Adds two numbers.",
        parameters: { type: "object", required: ["a", "b"] },
      });
      const outcomes = await runToolCalls(
        [
          call("add", { a: 2, b: 3 }),
          call("divide", { a: 1, b: 0 }),
          call("add", { a: "two" }),
          call("wait", {}),
        ],
        server.tools,
        { timeoutMs: 2000 },
      );
      expect(outcomes[0]!.message.content).toBe("5");
      expect(outcomes[1]!.message.content).toMatch(/cannot divide by 0/);
      expect(outcomes.map(({ failure }) => failure)).toEqual([
        undefined,
        "execution_failed",
        "execution_failed",
        "timed_out",
      ]);
    } finally {
      await server.close();
    }
  });

  it("may rename some of its tools", async () => {
    const server = await connectMcp({ command, args }, { only: ["add"], prefix: "math_" });
    expect(server.tools.map(({ spec }) => spec.name)).toEqual(["math_add"]);
    await server.close();
    await expect(connectMcp({ command, args }, { only: ["sub"] })).rejects.toThrow(
      /only: the server has no tool sub/,
    );
  });
});

describe("an agent", () => {
  const model = "tinker-ts/sprout";
  let folder: string;
  let service: ServiceClient;
  let sprout: Renderer;
  let qwen: Renderer;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-tools-"));
    vi.stubEnv("TINKER_TS_DATA_DIR", folder);
    service = new ServiceClient({ baseUrl: "local:" });
    const sampling = await service.createSamplingClient({ baseModel: model });
    const tokenizer = await sampling.getTokenizer();
    sprout = await getRenderer(recommendedRenderer(model, tokenizer), tokenizer);
    qwen = await getRenderer("qwen3_instruct", tokenizer);
  });
  afterAll(async () => {
    await service.close();
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Answers with given texts in the chat format. */
  const script = (renderer: Renderer, says: readonly Message[]): Policy => {
    let turn = 0;
    return ({ input }) => {
      const message = says[turn++]!;
      const own = rendererForTools(renderer);
      const question: Message = { role: "user", content: "Q" };
      const prompt = own.buildGenerationPrompt([question]);
      const whole = own.buildSupervisedExample([question, message]).input;
      const tokens = Int32Array.from(whole.toInts().slice(prompt.length));
      expect(input.length).toBeGreaterThan(0);
      const logprobs = new Float32Array(tokens.length).fill(-1);
      return Promise.resolve({ tokens, logprobs, stopReason: "stop" });
    };
  };
  const calls = (...toolCalls: ToolCall[]): Message => ({
    role: "assistant",
    content: "",
    toolCalls,
  });
  const says = (content: string): Message => ({ role: "assistant", content });

  const play = async (
    renderer: Renderer,
    messages: readonly Message[],
    options: Partial<Parameters<typeof toolEnvironment>[1]> & { tools?: readonly Tool[] } = {},
  ) => {
    const graded: ToolEpisode[] = [];
    const environment = toolEnvironment(
      {
        prompt: [
          { role: "system", content: "Be exact." },
          { role: "user", content: "What is 2 + 3?" },
        ],
        tools: options.tools ?? [add],
        grade: (episode) => (graded.push(episode), episode.answer === "5"),
      },
      { renderer, ...options },
    );
    const trajectory = await rollout(script(renderer, messages), environment);
    return { trajectory, graded };
  };

  it.each([
    ["a template that knows no functions", () => sprout],
    ["a format that knows them", () => qwen],
  ])("calls, reads and answers in %s, as one growing sequence", async (_, rendererOf) => {
    const renderer = rendererOf();
    const { trajectory, graded } = await play(renderer, [
      calls(call("add", '{"a": 2, "b": 3}', null)),
      says("5"),
    ]);
    expect(trajectory.stopReason).toBe("completed");
    expect(trajectory.transitions.map(({ reward }) => reward)).toEqual([0, 1]);
    expect(trajectory.transitions[1]!.metrics).toMatchObject({ correct: 1, calls_per_episode: 1 });
    expect(graded[0]!.messages.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "assistant",
    ]);
    const [first, second] = trajectory.transitions;
    const before = [...first!.observation.toInts(), ...first!.action.tokens];
    const prompt = [...second!.observation.toInts()];
    expect(prompt.slice(0, before.length)).toEqual(before);
    const text = renderer.tokenizer.decode(prompt);
    expect(text).toContain("Adds two numbers.");
    expect(text).toContain("Be exact.");
    expect(text).toMatch(/<tool_response>\s*5\s*<\/tool_response>/);
  });

  it("ends by a tool, by too many calls, by too many turns, in that order", async () => {
    const stop = defineTool({
      name: "stop",
      description: "",
      parameters: { type: "object" },
      run: () => new ToolReply("done", { stops: true }),
    });
    const sum = call("add", { a: 2, b: 3 }, null);
    const end = async (
      messages: readonly Message[],
      options: Parameters<typeof play>[2],
    ): Promise<unknown[]> => {
      const { trajectory, graded } = await play(sprout, messages, {
        tools: [add, stop],
        ...options,
      });
      return [trajectory.stopReason, graded.length, graded[0]?.toolCalls];
    };
    const both = calls(call("stop", {}, null), sum, sum);
    expect(await end([both], { maxToolCalls: 2, maxTurns: 1 })).toEqual(["tool_stopped", 1, 2]);
    expect(await end([calls(sum, sum)], { maxToolCalls: 1, maxTurns: 1 })).toEqual([
      "max_tool_calls",
      1,
      1,
    ]);
    expect(await end([calls(sum), calls(sum)], { maxTurns: 2 })).toEqual(["max_turns", 1, 2]);
  });

  it("that works for long has ten turns, thirty calls, and two attempts in a row at a call", async () => {
    const { environment } = agentic;
    const sum = call("add", { a: 2, b: 3 }, null);
    const turns = Array.from({ length: 11 }, () => calls(sum));
    const long = await play(sprout, turns, environment);
    expect(long.trajectory.stopReason).toBe("max_turns");
    expect(long.trajectory.transitions).toHaveLength(10);
    const many = await play(sprout, [calls(...Array<ToolCall>(31).fill(sum))], environment);
    expect([many.trajectory.stopReason, many.graded[0]!.toolCalls]).toEqual(["max_tool_calls", 30]);
    const broken = says("<tool_call>\n{add 2 3}\n</tool_call>");
    const tries = await play(sprout, [broken, broken, calls(sum), broken, says("5")], environment);
    expect(tries.trajectory.stopReason).toBe("completed");
    const given = await play(sprout, [broken, broken, broken], environment);
    expect(given.trajectory.stopReason).toBe("parse_error");
  });

  it("without parseable calls is not graded, and may be retried", async () => {
    const broken = says("<tool_call>\n{add 2 3}\n</tool_call>");
    const { trajectory, graded } = await play(sprout, [broken]);
    expect(trajectory).toMatchObject({
      stopReason: "parse_error",
      transitions: [{ reward: -0.1, metrics: { parse_error: 1 } }],
    });
    expect(graded).toEqual([]);
    const again = await play(sprout, [broken, says("5")], { parseErrors: { maxRetries: 1 } });
    expect(again.graded).toHaveLength(1);
    const prompt = again.trajectory.transitions[1]!.observation.toInts();
    expect(sprout.tokenizer.decode(prompt)).toMatch(/\{add 2 3\}.*could not be read/s);
  });

  it("parses every call that text can express", () => {
    const renderer = rendererForTools(sprout);
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { minLength: 1, maxLength: 3 }),
        (list) => {
          const made = list.map((args) => call("add", args, null));
          const text = renderer.buildSupervisedExample([
            { role: "user", content: "Q" },
            calls(...made),
          ]).input;
          const prompt = renderer.buildGenerationPrompt([{ role: "user", content: "Q" }]);
          const { message } = renderer.parseResponse(text.toInts().slice(prompt.length));
          const read = message.toolCalls?.map((one) => JSON.parse(one.function.arguments));
          // Only tags inside an argument are ambiguous in text.
          if (JSON.stringify(list).includes("tool_call>")) return;
          expect(read).toEqual(list.map((args) => JSON.parse(JSON.stringify(args))));
        },
      ),
      { numRuns: 25 },
    );
  });
});
