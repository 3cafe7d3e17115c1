import { readdirSync } from "node:fs";
import path from "node:path";
import {
  decodeJson,
  decodeProto,
  encodeProto,
  type RouteName,
  type WireInput,
} from "tinker-ts/wire";
import { expect } from "vitest";
import { toStepMetrics } from "../../src/training/operations/train.js";
import { SqlDatabase } from "../../src/store/sql.js";
import { crashCopy } from "../support/crash-copy.js";
import type { RealKit } from "../support/real-kit.js";
import { realModels } from "../support/real-models.js";
import { getSeries } from "../studio/support.js";
import { TestApp } from "../support/test-app.js";
import { plainStep, type Act, type Program, type Round } from "./programs.js";
import { digests, inputsOf, Reference, type Expected } from "./reference.js";

type Answer = Record<string, unknown>;

interface Sent {
  readonly act: Act;
  /** Sends it; the same request every time. */
  readonly send: (signal?: AbortSignal) => Promise<string>;
}

const rank = 2;
const seed = 5;

/** A server, its client, and what the law demands of both. */
export class World {
  readonly #kit: RealKit;
  readonly #options: object;
  readonly #reference: Reference;
  readonly #past: TestApp[] = [];
  #app: TestApp;
  #session = "";
  #model = "";
  #seq = 1;
  #bystanders = 0;
  #samples = 0;
  #probes = 0;
  /** Results that came along with the acceptance of their requests. */
  readonly #held = new Map<string, Buffer>();
  /** What it is at, for the message about a program that has no end. */
  doing = "it begins";
  #rounds = 0;
  /** Tokens that were passed, by the step they were for; the last one is under way. */
  readonly #tokens = [0];

  private constructor(kit: RealKit, options: object, app: TestApp, reference: Reference) {
    this.#kit = kit;
    this.#options = options;
    this.#app = app;
    this.#reference = reference;
  }

  static async open(kit: RealKit, { maxJournalBytes }: Program): Promise<World> {
    const options = {
      kit: kit.kit,
      models: { toy: realModels.qwen3 },
      limits: { maxJournalBytes },
    };
    const reference = await Reference.create(await kit.load(realModels.qwen3), seed, rank);
    const world = new World(kit, options, await TestApp.open(options), reference);
    world.#session = await world.#app.session();
    world.#model = await world.#createModel(0);
    return world;
  }

  /** Runs a round and compares every answer with what it must be. */
  async run(round: Round): Promise<void> {
    const place = `round ${this.#rounds++}`;
    this.doing = `${place}: requests are sent`;
    const { fault } = round;
    const acts = fault === "none" ? round.acts : round.acts.slice(0, 1);
    // What is saved in this round may replace under a sample's feet what was saved before.
    const saves = acts.some(({ act }) => act === "save");
    const sent = acts.map((act) => this.#prepare(act, saves, round));
    if (fault !== "none") this.#break(fault, this.#seq - 1);
    const sending = sent.map((item) => this.#deliver(item, round.delivery));
    if (round.end === "killed under way" && fault === "none") {
      for (let turn = 0; turn < round.turns; turn++) await nextTurn();
      await this.#kill();
    } else await Promise.all(sending);
    if (fault === "acceptance") this.#mend();
    for (const [index, item] of sent.entries()) {
      this.doing = `${place}: waits for request ${index}, ${item.act.act}`;
      await this.#settle(item, fault === "commit");
    }
    this.doing = `${place}: the server is ${round.end}`;
    if (fault === "commit") this.#mend();
    if (round.end === "stopped") await this.#app.restart();
    if (round.end === "killed") await this.compareAfterKill();
  }

  /** The state in memory, the state that a killed server comes back with, and the one it should be. */
  async compareAfterKill(): Promise<void> {
    await this.#compareState();
    await this.#kill();
    await this.#compareState();
  }

  /** Compares everything, waiting gradients too. */
  async finish(): Promise<void> {
    this.doing = "everything is compared";
    await this.compareAfterKill();
    const way = { dialect: "json", isHeld: true } as const;
    await this.#settle(this.#prepare(plainStep, false, way), false);
    await this.#compareState();
  }

  async close(): Promise<void> {
    this.doing += "; the servers are closed";
    for (const app of [...this.#past, this.#app]) await app.dispose();
    await this.#reference.release();
  }

  /** Goes on with the files as they are at this moment; the process of before is heard no more. */
  async #kill(): Promise<void> {
    const dataDir = crashCopy(this.#app.dataDir);
    this.#past.push(this.#app);
    this.#app = await TestApp.open({ ...this.#options, dataDir });
    // Everything that a kill leaves behind is accounted for.
    expect(this.#app.logLines.filter((line) => line.includes("lost-and-found"))).toEqual([]);
  }

  async #createModel(seq: number): Promise<string> {
    const { requestId, modelId } = await this.#app.call("createModel", {
      sessionId: this.#session,
      modelSeqId: seq,
      baseModel: "toy",
      loraConfig: { rank, seed },
    });
    expect(await this.#app.result(requestId)).not.toHaveProperty("error");
    return modelId!;
  }

  /** Makes a request of an act. */
  #prepare(
    act: Act,
    isAmongSaves: boolean,
    { dialect, isHeld }: Pick<Round, "dialect" | "isHeld">,
  ): Sent {
    const wish = isHeld ? { "x-tinker-hold-ms": "1000" } : {};
    const modelId = this.#model;
    const isNumbered = act.act !== "sample" && act.act !== "bystander";
    const seqId = isNumbered ? this.#seq++ : 0;
    const saved = "which" in act && !isAmongSaves ? this.#reference.saved(act.which) : undefined;
    const request = (name: RouteName, body: object, headers = {}): Sent => ({
      act,
      send: async (signal) => {
        const options = { headers: { ...headers, ...wish }, ...(signal ? { signal } : {}) };
        return this.#accepted(await this.#app.fetch(name, body as never, options));
      },
    });
    switch (act.act) {
      case "pass": {
        const data = act.rows.map((row) => ({
          modelInput: [...row.tokens],
          lossFnInputs: inputsOf(act.lossFn, row, Float64Array),
        }));
        const input = { data, lossFn: act.lossFn as "ppo", lossFnConfig: act.config };
        if (dialect === "proto") {
          const forwardOnly = !act.isBackward;
          const body = { modelId, seqId, forwardBackwardInput: input, forwardOnly };
          return { act, send: () => this.#sendProto(body, wish) };
        }
        return act.isBackward
          ? request("forwardBackward", { modelId, seqId, forwardBackwardInput: input })
          : request("forward", { modelId, seqId, forwardInput: input });
      }
      case "step":
        return request("optimStep", { modelId, seqId, adamParams: act.adam });
      case "save":
        return act.isSampler
          ? request("saveWeightsForSampler", { modelId, seqId, path: act.name })
          : request("saveWeights", { modelId, seqId, path: act.name, overwrite: act.overwrite });
      case "load": {
        const target = `tinker://${modelId}/${saved ?? "weights/none"}`;
        const body = { modelId, seqId, path: target, optimizer: act.optimizer };
        return { ...request("loadWeights", body), act: { ...act, path: saved } };
      }
      case "sample": {
        const address = saved
          ? { modelPath: `tinker://${modelId}/${saved}` }
          : { baseModel: "toy" };
        const samplingParams = { maxTokens: 4, seed: act.seed };
        // Samples have no number; a key tells that two of them are the same.
        const headers = { "x-idempotency-key": `sample-${this.#samples++}` };
        const made = request("sample", { prompt: [1, 2, 3], samplingParams, ...address }, headers);
        return { ...made, act: { ...act, path: saved } };
      }
      case "bystander":
        return { act, send: () => this.#bystand() };
      case "mistake":
        return { act, send: () => this.#mistake(seqId) };
    }
  }

  async #bystand(): Promise<string> {
    const modelId = await this.#createModel(++this.#bystanders);
    const data = [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] } }];
    const forwardBackwardInput = { data, lossFn: "cross_entropy" as const };
    await this.#app.call("forwardBackward", { modelId, seqId: 1, forwardBackwardInput });
    return (await this.#app.call("unloadModel", { modelId })).requestId;
  }

  async #sendProto(body: WireInput<"ForwardBackwardRequest">, wish: object): Promise<string> {
    const response = await this.#app.handle(
      new Request("http://localhost/api/v1/forward_backward", {
        method: "POST",
        headers: { "content-type": "application/x-protobuf", ...wish },
        body: Uint8Array.from(encodeProto("ForwardBackwardRequest", body)),
      }),
    );
    return this.#accepted(response);
  }

  /** The id of a request that was accepted; a result that came along is remembered. */
  async #accepted(response: Response): Promise<string> {
    const bytes = Buffer.from(await response.arrayBuffer());
    if (!response.ok) throw new Error(`${response.status}: ${bytes.toString()}`);
    const resultOf = response.headers.get("x-tinker-result-of");
    if (resultOf === null) {
      return (JSON.parse(bytes.toString()) as { request_id: string }).request_id;
    }
    this.#held.set(resultOf, bytes);
    return resultOf;
  }

  async #mistake(seqId: number): Promise<string> {
    const response = await this.#app.handle(
      new Request("http://localhost/api/v1/optim_step", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model_id: this.#model, seq_id: seqId, adam_params: { beta1: "x" } }),
      }),
    );
    const { request_id } = (await response.json()) as { request_id: string };
    return request_id;
  }

  async #deliver({ send }: Sent, delivery: Round["delivery"]): Promise<void> {
    const quietly = (sending: Promise<unknown>): Promise<unknown> => sending.catch(() => {});
    if (delivery === "twice") await Promise.all([quietly(send()), quietly(send())]);
    else if (delivery === "once") await quietly(send());
    else {
      const connection = new AbortController();
      const sending = quietly(send(connection.signal));
      await nextTurn();
      connection.abort();
      await sending;
    }
  }

  async #settle({ act, send }: Sent, isFaulty: boolean): Promise<void> {
    const requestId = await send();
    const answer = await this.#answer(requestId);
    if (isFaulty && answer["category"] === "server") return;
    // How full the journal is depends on when the last snapshot was written.
    if (String(answer["error"]).includes("call optim_step")) return;
    const expected = await this.#reference.apply(act);
    compare(act, answer, expected);
    if (act.act === "pass" && "pass" in expected) {
      const tokens = act.rows.reduce((sum, row) => sum + row.tokens.length, 0);
      this.#tokens.push(this.#tokens.pop()! + tokens);
    }
    if ("step" in expected) this.#tokens.push(0);
  }

  /** An answer in both dialects, which must say the same. */
  async #answer(requestId: string): Promise<Answer> {
    const json = await this.#app.result(requestId);
    const headers = { accept: "application/x-protobuf" };
    const response = await this.#app.fetch("retrieveFuture", { requestId }, { headers });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const held = this.#held.get(requestId);
    if (held) expect(held.equals(bytes), "what came along is what a poll gets").toBe(true);
    if (response.headers.get("content-type") !== "application/x-protobuf") return json;
    const type = "sequences" in json ? "SampleResponse" : "ForwardBackwardOutput";
    const both = [decodeJson(type, json), decodeProto(type, bytes)];
    expect(both[0]).toEqual(both[1]);
    return json;
  }

  async #compareState(): Promise<void> {
    const root = path.join(this.#app.dataDir, "checkpoints");
    const list = (): string[] => {
      try {
        return readdirSync(root);
      } catch {
        return [];
      }
    };
    const before = new Set(list());
    const body = { modelId: this.#model, seqId: this.#seq++, path: `probe-${this.#probes++}` };
    const { requestId } = await this.#app.call("saveWeights", body);
    expect(await this.#app.result(requestId)).toHaveProperty("path");
    const [folder] = list().filter((name) => !before.has(name));
    const read = await this.#kit.kit.readAdapter(path.join(root, folder!), realModels.qwen3);
    expect(digests(read)).toEqual(await this.#reference.state());
    await this.#compareRecord();
  }

  /** What the studio shows: every token that was passed once, whatever was killed or repeated. */
  async #compareRecord(): Promise<void> {
    const series = await getSeries(this.#app, this.#model, ["server/tokens:sum", "step:max"]);
    const [tokens, steps] = ["server/tokens:sum", "step:max"].map((wanted) =>
      series.find(({ key }) => key === wanted),
    );
    const recorded = [...(tokens?.x ?? [])].map((x, place) => [x, tokens!.mean[place]]);
    expect(recorded).toEqual([...this.#tokens.entries()].filter(([, count]) => count > 0));
    expect([...(steps?.x ?? [])]).toEqual([...this.#tokens.keys()].slice(0, -1));
  }

  #break(fault: "acceptance" | "commit", seq: number): void {
    const isEnding = `NEW.request_id = '${this.#model}:${seq}'
      AND (NEW.state = 'done' OR NEW.applied IS NOT NULL)`;
    for (const way of ["INSERT", "UPDATE"]) {
      this.#exec(
        `CREATE TRIGGER fault_${way} BEFORE ${way} ON requests
          WHEN ${fault === "acceptance" ? way === "INSERT" : isEnding}
          BEGIN SELECT RAISE(ABORT, 'a fault of the test'); END`,
      );
    }
  }

  #mend(): void {
    for (const way of ["INSERT", "UPDATE"]) this.#exec(`DROP TRIGGER fault_${way}`);
  }

  #exec(sql: string): void {
    const database = new SqlDatabase(path.join(this.#app.dataDir, "server.db"));
    database.exec(sql);
    database.close();
  }
}

function compare(act: Act, answer: Answer, expected: Expected): void {
  if ("refused" in expected) {
    expect(answer).toMatchObject({ category: "user" });
    const isDropped = expected.refused.includes("gradient is dropped");
    expect(String(answer["error"]).includes("gradient is dropped")).toBe(isDropped);
    return;
  }
  expect(answer, JSON.stringify(act)).not.toHaveProperty("error");
  if ("pass" in expected) {
    const output = decodeJson("ForwardBackwardOutput", answer);
    expect(output.metrics).toEqual(expected.pass.metrics);
    expect(output.lossFnOutputs.map(({ logprobs }) => logprobs?.data)).toEqual(
      expected.pass.outputs.map(({ logprobs }) => logprobs),
    );
  } else if ("step" in expected) {
    const { metrics } = decodeJson("OptimStepResponse", answer);
    expect(metrics).toEqual(toStepMetrics(expected.step));
  } else if ("sample" in expected) {
    const { sequences } = decodeJson("SampleResponse", answer);
    expect(sequences.map(({ tokens }) => tokens)).toEqual(
      expected.sample.samples.map(({ tokens }) => tokens),
    );
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
