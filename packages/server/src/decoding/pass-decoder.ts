import { decodeProto, encodeJson, stringifyJson, type ProtoTypeName } from "tinker-ts/wire";
import { DecodingThread } from "./decoding-thread.js";
import { toEnginePass, type EnginePass } from "./engine-pass.js";

/** What is smaller takes the event loop a few milliseconds. */
const smallBytes = 256 * 1024;

/**
 * Decodes what was accepted: passes whose turn has come, and results for clients that want JSON. Large ones
 * go to a thread, another one than that of bodies, which may have much to do for somebody else.
 */
export class PassDecoder {
  readonly #thread = new DecodingThread();

  /** A pass as the engine wants it; the payload may be used up. */
  async decode(owner: string, payload: Uint8Array): Promise<EnginePass> {
    if (payload.length <= smallBytes) return toEnginePass(payload);
    const pass = await this.#thread.run(owner, { kind: "pass", payload }, [payload]);
    return pass as EnginePass;
  }

  /** The JSON text of a result that is kept in its binary form. */
  async toJson(owner: string, typeName: ProtoTypeName, bytes: Uint8Array): Promise<Uint8Array> {
    if (bytes.length <= smallBytes) {
      const value = decodeProto(typeName, bytes);
      return Buffer.from(stringifyJson(encodeJson(typeName, value as never)));
    }
    const json = await this.#thread.run(owner, { kind: "result", typeName, bytes }, []);
    return json as Uint8Array;
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}
