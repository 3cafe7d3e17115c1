import type { DatumLike } from "tinker-ts";
import type { BenchModel } from "./bench-model.js";
import { withServer, type BenchServer } from "./bench-server.js";
import { IdleLoop } from "./idle-loop.js";
import { line, median, timed } from "./measure.js";

const requestCount = 500;
/** Requests of the attacker at the same time; each is hung up on after a while. */
const [atOnce, patienceMs] = [8, 2000];
const delayLimitMs = 50;
const waitLimit = 3;
const keys = { attacker: "tml-bench-attacker", other: "tml-bench-other" };
const headers = {
  "x-api-key": keys.attacker,
  authorization: `Bearer ${keys.attacker}`,
  "content-type": "application/json",
  "x-tinker-studio": "1",
};

/** How long another owner waits, and the event loop, while one key asks for as much as every route takes. */
export async function reportPrices(model: BenchModel): Promise<void> {
  const apiKeys = [
    { key: "tml-bench-key", owner: "bench" },
    { key: keys.attacker, owner: "attacker" },
    { key: keys.other, owner: "other" },
  ];
  await withServer(model, { apiKeys, threads: 1 }, async (server) => {
    const row = Int32Array.from({ length: 64 }, (_, i) => (i * 7) % model.vocabSize);
    const weights = new Float32Array(64).fill(1);
    const data: DatumLike[] = [{ modelInput: row, lossFnInputs: { target_tokens: row, weights } }];
    const other = server.client(keys.other);
    const training = await other.createLoraTrainingClient({ baseModel: "bench", rank: 8 });
    const sampler = await other.createSamplingClient({ baseModel: "bench" });
    const works = {
      "a sample of 4 tokens": () =>
        sampler.sample({ prompt: [1, 2, 3], samplingParams: { maxTokens: 4, seed: 1 } }),
      "a step": async () => {
        await training.forwardBackward(data, "cross_entropy");
        await training.optimStep({ learningRate: 1e-4 });
      },
    };
    const measure = async (isOver: (count: number) => boolean): Promise<number[][]> => {
      const times = Object.values(works).map((): number[] => []);
      for (let count = 0; !isOver(count); count++) {
        for (const [index, work] of Object.values(works).entries()) {
          times[index]!.push(await timed(work));
        }
      }
      return times;
    };
    await measure((count) => count === 5);
    const alone = await measure((count) => count === 20);
    const look = async (): Promise<number> =>
      (await server.metrics("tinker_event_loop_delay_p99_seconds"))[0]! * 1000;
    const idleLoop = new IdleLoop();
    await look();
    await idleLoop.delayMs();
    let isOver = false;
    const attack = attackWith(server).finally(() => {
      isOver = true;
    });
    const beside = await measure(() => isOver);
    const statuses = await attack;
    const idleMs = await idleLoop.delayMs();
    const delayMs = Math.max(0, (await look()) - idleMs);
    await idleLoop.stop();
    line(`${requestCount} requests at the limits`, statuses);
    const figure = `${delayMs.toFixed(1)} ms beyond ${idleMs.toFixed(1)} ms without work`;
    line("  event loop delay, p99", figure, { is: delayMs, of: delayLimitMs });
    for (const [index, name] of Object.keys(works).entries()) {
      const [own, takes] = [median(alone[index]!), median(beside[index]!)];
      const worst = Math.max(...beside[index]!);
      line(
        `  ${name} of another owner`,
        `${takes.toFixed(1)} ms, at worst ${worst.toFixed(0)}; alone ${own.toFixed(1)} ms`,
        { is: takes, of: waitLimit * own },
      );
    }
  });
}

/** Sends random requests, some at a time; returns how many had each status. */
async function attackWith(server: BenchServer): Promise<string> {
  const random = seeded(7);
  const statuses = new Map<string, number>();
  let sent = 0;
  const worker = async (): Promise<void> => {
    while (sent++ < requestCount) {
      const { page, body } = dearRequest(random);
      const signal = AbortSignal.timeout(patienceMs);
      const init = body === undefined ? {} : { method: "POST", body };
      const status = await server
        .ask(page, { ...init, headers, signal })
        .then(async (answer) => {
          await answer.arrayBuffer();
          return String(answer.status);
        })
        .catch(() => "hung up");
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return [...statuses].map(([status, count]) => `${status}: ${count}`).join(", ");
}

type Random = (most: number) => number;

/** A request that asks for about as much as its route takes. */
function dearRequest(random: Random): { page: string; body?: string } {
  const tokens = (length: number) => Array.from({ length }, () => 5 + random(200));
  const name = "x".repeat(1 + random(2000));
  const run = `run-${random(50)}`;
  const requests: readonly (() => { page: string; body?: unknown })[] = [
    () => ({
      page: "/v1/completions",
      body: {
        model: "bench",
        prompt: Array.from({ length: 1 + random(64) }, () => tokens(1 + random(900))),
        n: 1 + random(128),
        max_tokens: 1 + random(900),
        echo: random(2) === 0,
        stream: random(2) === 0,
        ...(random(2) === 0 ? { logprobs: random(21) } : {}),
      },
    }),
    () => ({
      page: "/v1/chat/completions",
      body: {
        model: "bench",
        messages: Array.from({ length: 1 + random(500) }, () => ({ role: "user", content: name })),
        n: 1 + random(128),
        ...(random(2) === 0 ? { logprobs: true, top_logprobs: random(21) } : {}),
      },
    }),
    () => ({
      page: "/api/v1/asample",
      body: {
        base_model: "bench",
        prompt: { chunks: [{ type: "encoded_text", tokens: tokens(1 + random(900)) }] },
        num_samples: 1 + random(1024),
        topk_sample_logprobs: random(21),
        sampling_params: { max_tokens: 1 + random(100) },
      },
    }),
    () => ({ page: `/v1/models/${name}` }),
    () => ({
      page: "/api/v1/logs",
      body: [{ run, writer: `w${random(1e9)}`, n: 1, kind: "open", name: "r" }],
    }),
    () => {
      const writer = `w${random(1e9)}`;
      const lines = Array.from({ length: 1 + random(190) }, (_, n) => {
        const head = { run, writer, n: n + 2 };
        if (random(2) === 0) return { ...head, kind: "text", text: "y".repeat(random(20_000)) };
        const metrics = Object.fromEntries(Array.from({ length: 100 }, (__, m) => [`m${m}`, m]));
        return { ...head, kind: "metrics", step: n, metrics };
      });
      return { page: "/api/v1/logs", body: [{ run, writer, n: 1, kind: "open" }, ...lines] };
    },
    () => ({ page: `/studio/api/runs?sort=${["nll", "name", "-updated"][random(3)]}&q=${name}` }),
    () => ({ page: `/studio/api/runs/${run}/log?q=zz&limit=5000` }),
    () => ({ page: `/studio/api/runs/${run}/log?limit=5000` }),
    () => ({ page: `/studio/api/series?runs=${run}&keys=m1&keys=m2&buckets=5000` }),
    () => ({ page: `/studio/api/checkpoints` }),
    () => ({ page: `/api/v1/training_runs?limit=1000&offset=${random(1000)}` }),
    () => ({
      page: "/v1/completions",
      body: `{"model":"bench","prompt":${"[".repeat(random(2000))}`,
    }),
    () => ({
      page: "/api/v1/create_session",
      body: { tags: [], user_metadata: { a: Array.from({ length: 60_000 }, () => 1) } },
    }),
  ];
  const { page, body } = requests[random(requests.length)]!();
  if (body === undefined) return { page };
  const isLines = page === "/api/v1/logs" && Array.isArray(body);
  if (isLines)
    return { page, body: (body as object[]).map((one) => JSON.stringify(one)).join("\n") };
  return { page, body: typeof body === "string" ? body : JSON.stringify(body) };
}

/** The same numbers every time. */
function seeded(seed: number): Random {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}
