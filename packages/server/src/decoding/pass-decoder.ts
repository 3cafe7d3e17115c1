import { decodeProto, encodeJson, stringifyJson, type ProtoTypeName } from "tinker-ts/wire";
import { readPayload, type StoredPayload } from "../store/payloads.js";
import { DecodingThreads } from "./decoding-threads.js";
import { decodePass, type EnginePass } from "./engine-pass.js";

/** What is smaller takes the event loop a few milliseconds. */
const smallBytes = 256 * 1024;

/**
 * Decodes what was accepted: passes whose turn has come, and results for clients that want JSON. Large ones
 * go to a thread, another one than that of bodies, which may have much to do for somebody else.
 */
export class PassDecoder {
  readonly #threads = new DecodingThreads();

  /** A pass as the engine wants it, if it is the one that was accepted. */
  async decode(owner: string, payload: StoredPayload): Promise<EnginePass> {
    if (payload.stored.sizeBytes <= smallBytes) return decodePass(await readPayload(payload));
    // Read there as well: memory for it would have the event loop collect garbage.
    return (await this.#threads.run(owner, { kind: "pass", payload }, [])) as EnginePass;
  }

  /** The JSON text of a result that is kept in its binary form. */
  async toJson(owner: string, typeName: ProtoTypeName, bytes: Uint8Array): Promise<Uint8Array> {
    if (bytes.length <= smallBytes) {
      const value = decodeProto(typeName, bytes);
      return Buffer.from(stringifyJson(encodeJson(typeName, value as never)));
    }
    const json = await this.#threads.run(owner, { kind: "result", typeName, bytes }, []);
    return json as Uint8Array;
  }

  close(): Promise<void> {
    return this.#threads.close();
  }
}
