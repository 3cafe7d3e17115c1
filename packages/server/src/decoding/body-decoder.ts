import { ModelInput, TensorData, type WireInput, type WireValue } from "tinker-ts/wire";
import type { BodyForm } from "./body-form.js";
import { decodeBody, joined, type DecodedBody } from "./decode-body.js";
import { DecodingThreads } from "./decoding-threads.js";
import type { JsonText } from "./json-scan.js";
import { readJsonTexts, type JsonTextForm } from "./json-text.js";

/** Bodies up to this size are decoded at once: handing them over would take longer. */
const smallBytes = 64 * 1024;

/** Unpacks and decodes bodies: small ones at once, all others in a thread. */
export class BodyDecoder {
  readonly #threads = new DecodingThreads();
  /** The last lines of each owner that a thread reads: it reads those that come later behind them. */
  readonly #lines = new Map<string, Promise<unknown>>();

  /** Decodes a body that has arrived in parts; those are used up. */
  async decode(parts: readonly Uint8Array[], form: BodyForm, owner: string): Promise<DecodedBody> {
    if (isSmall(parts) && !form.isCompressed) return decodeBody(joined(parts), form);
    const work = { kind: "body", parts, form } as const;
    const body = (await this.#threads.run(owner, work, parts)) as DecodedBody;
    if (form.typeName !== "SampleRequest") return body;
    return { ...body, value: revivedSample(body.value as FlatSample) };
  }

  /**
   * The texts of JSON in a body that has arrived in parts; those are used up. Lines of an owner are read in the
   * order in which they came: a log is told in it.
   */
  async readJson(
    parts: readonly Uint8Array[],
    form: JsonTextForm,
    owner: string,
  ): Promise<readonly JsonText[]> {
    const before = form === "lines" ? this.#lines.get(owner) : undefined;
    if (isSmall(parts) && !before) return readJsonTexts(joined(parts), form);
    const reading = this.#threads.run(owner, { kind: "json", parts, form }, parts);
    if (form === "lines") this.#lines.set(owner, reading);
    try {
      return (await reading) as JsonText[];
    } finally {
      if (this.#lines.get(owner) === reading) this.#lines.delete(owner);
    }
  }

  close(): Promise<void> {
    return this.#threads.close();
  }
}

function isSmall(parts: readonly Uint8Array[]): boolean {
  return parts.reduce((sum, { length }) => sum + length, 0) <= smallBytes;
}

/** A sample request whose objects of classes have become plain on the way between threads. */
export type FlatSample = Omit<WireValue<"SampleRequest">, "prompt" | "targetPromptLogprobs"> & {
  readonly prompt: ModelInput["chunks"];
  readonly targetPromptLogprobs: WireInput<"TensorData"> | null;
};

function revivedSample({ prompt, targetPromptLogprobs, ...rest }: FlatSample) {
  const targets = targetPromptLogprobs && new TensorData(targetPromptLogprobs);
  const revived = { prompt: new ModelInput({ chunks: prompt }), targetPromptLogprobs: targets };
  return { ...rest, ...revived } satisfies WireValue<"SampleRequest">;
}
