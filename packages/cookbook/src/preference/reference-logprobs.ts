import { createHash } from "node:crypto";
import path from "node:path";
import { ArgumentError, type Datum, type SamplingClient } from "tinker-ts";
import { weightsOf } from "../data/index.js";
import { KeptLines } from "../runs/index.js";

/** The file of a run's folder that keeps what the reference model said. */
export const referenceFile = "reference_logprobs.jsonl";

/** What a reference model is asked through, and where its answers are kept. */
export interface ReferenceOptions {
  /** The run's folder. */
  readonly folder: string;
  /** Names the model: answers of another one are not used. */
  readonly identity: string;
  /** The model; made when something is to be asked. */
  readonly open: () => Promise<SamplingClient>;
  /** Gives the work up. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * What a reference model says of data: the sum of log-probabilities by the data's weights.
 *
 * The reference does not change while another model is trained, so everything is asked once. Answers are on
 * the disk before they are used, so a run that goes on has the very numbers that it began with.
 */
export class ReferenceLogprobs {
  readonly #options: ReferenceOptions;
  readonly #kept: KeptLines;
  readonly #known: Map<string, number>;
  #client: Promise<SamplingClient> | undefined;

  private constructor(options: ReferenceOptions, kept: KeptLines) {
    this.#options = options;
    this.#kept = kept;
    const known = kept.lines.filter(
      ({ key, logprob }) => typeof key === "string" && typeof logprob === "number",
    );
    this.#known = new Map(known.map(({ key, logprob }) => [key as string, logprob as number]));
  }

  /** Reads what a run's folder has. */
  static async open(options: ReferenceOptions): Promise<ReferenceLogprobs> {
    const kept = await KeptLines.open(path.join(options.folder, referenceFile));
    return new ReferenceLogprobs(options, kept);
  }

  /** What is known of a datum; undefined when it was never asked. */
  find(datum: Datum): number | undefined {
    return this.#known.get(this.#keyOf(datum));
  }

  /** The sums of some data; those that are not known are asked all at once. */
  async of(data: readonly Datum[]): Promise<number[]> {
    const missing = new Map(
      data
        .map((datum) => [this.#keyOf(datum), datum] as const)
        .filter(([key]) => !this.#known.has(key)),
    );
    if (missing.size > 0) await this.#ask([...missing]);
    return data.map((datum) => this.#known.get(this.#keyOf(datum))!);
  }

  async #ask(missing: readonly (readonly [key: string, datum: Datum])[]): Promise<void> {
    const { open, signal } = this.#options;
    const client = await (this.#client ??= open());
    const found = await Promise.all(
      missing.map(async ([key, datum]) => [key, await sumOf(client, datum, signal)] as const),
    );
    await this.#kept.append(...found.map(([key, logprob]) => ({ key, logprob })));
    for (const [key, logprob] of found) this.#known.set(key, logprob);
  }

  #keyOf(datum: Datum): string {
    const hash = createHash("sha256").update(this.#options.identity).update("\0");
    hash.update(JSON.stringify(datum.modelInput));
    hash.update(String(datum.lossFnInputs["target_tokens"]!.data.at(-1)));
    return hash.update(Float32Array.from(weightsOf(datum))).digest("base64url");
  }
}

async function sumOf(
  client: SamplingClient,
  datum: Datum,
  signal: AbortSignal | undefined,
): Promise<number> {
  const weights = weightsOf(datum);
  const last = Number(datum.lossFnInputs["target_tokens"]!.data.at(-1));
  const logprobs = await client.computeLogprobs(datum.modelInput.appendInt(last), { signal });
  if (logprobs.length !== weights.length + 1) {
    throw new ArgumentError(
      "reference",
      `returned ${logprobs.length} log-probabilities for ${weights.length + 1} tokens`,
    );
  }
  let sum = 0;
  for (let at = 0; at < weights.length; at++) {
    if (weights[at] !== 0) sum += weights[at]! * (logprobs[at + 1] ?? 0);
  }
  return sum;
}
