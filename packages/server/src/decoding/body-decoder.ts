import { ModelInput, type WireValue } from "tinker-ts/wire";
import type { BodyForm } from "./body-form.js";
import { decodeBody, joined } from "./decode-body.js";
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
  async decode(parts: readonly Uint8Array[], form: BodyForm, owner: string): Promise<unknown> {
    if (isSmall(parts) && !form.isCompressed) return decodeBody(joined(parts), form);
    const value = await this.#threads.run(owner, { kind: "body", parts, form }, parts);
    return form.typeName === "SampleRequest" ? revivedSample(value as FlatSample) : value;
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

type FlatSample = Omit<WireValue<"SampleRequest">, "prompt"> & {
  readonly prompt: ModelInput["chunks"];
};

function revivedSample({ prompt, ...rest }: FlatSample): WireValue<"SampleRequest"> {
  return { ...rest, prompt: new ModelInput({ chunks: prompt }) };
}
