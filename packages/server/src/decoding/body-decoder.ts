import { ModelInput, type WireValue } from "tinker-ts/wire";
import type { BodyForm } from "./body-form.js";
import { decodeBody } from "./decode-body.js";
import { DecodingThreads } from "./decoding-threads.js";

/** Bodies up to this size are decoded at once: handing them over would take longer. */
const smallBytes = 64 * 1024;

/** Unpacks and decodes bodies: small ones at once, all others in a thread. */
export class BodyDecoder {
  readonly #threads = new DecodingThreads();

  /** Decodes a body that has arrived in parts; those are used up. */
  async decode(parts: readonly Uint8Array[], form: BodyForm, owner: string): Promise<unknown> {
    const sizeBytes = parts.reduce((sum, { length }) => sum + length, 0);
    if (sizeBytes <= smallBytes && !form.isCompressed) {
      return decodeBody(parts.length === 1 ? parts[0]! : Buffer.concat(parts), form);
    }
    const value = await this.#threads.run(owner, { kind: "body", parts, form }, parts);
    return form.typeName === "SampleRequest" ? revivedSample(value as FlatSample) : value;
  }

  close(): Promise<void> {
    return this.#threads.close();
  }
}

type FlatSample = Omit<WireValue<"SampleRequest">, "prompt"> & {
  readonly prompt: ModelInput["chunks"];
};

function revivedSample({ prompt, ...rest }: FlatSample): WireValue<"SampleRequest"> {
  return { ...rest, prompt: new ModelInput({ chunks: prompt }) };
}
