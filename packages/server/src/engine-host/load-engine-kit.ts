import type { EngineKit } from "../engine-port/engine-kit.js";

/** What the engine may use. */
export interface EngineSettings {
  readonly threads?: number;
  readonly memoryBytes?: number;
}

/** Loads the engine package; it is large, so this happens when the first model is needed. */
export async function loadEngineKit(settings: EngineSettings): Promise<EngineKit> {
  void settings;
  throw new Error("not there yet");
}
