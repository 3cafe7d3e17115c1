import { Engine, type BaseModel } from "@tinker-ts/engine";
import { loadEngineKit } from "../../src/engine-host/load-engine-kit.js";
import type { EngineKit } from "../../src/engine-port/engine-kit.js";

/** The real engine, shared by any number of applications: starting it takes longer than most tests. */
export class RealKit {
  readonly kit: EngineKit;
  readonly #engine: Engine;
  readonly #models = new Map<string, Promise<BaseModel>>();

  private constructor(kit: EngineKit, engine: Engine) {
    this.#engine = engine;
    const loadModel = (folder: string): Promise<BaseModel> => this.load(folder);
    this.kit = { ...kit, createEngine: async () => ({ loadModel, close: async () => {} }) };
  }

  static async open(): Promise<RealKit> {
    return new RealKit(await loadEngineKit({}), await Engine.create({ threads: 1 }));
  }

  /** A model, loaded once. */
  load(folder: string): Promise<BaseModel> {
    let model = this.#models.get(folder);
    if (!model) this.#models.set(folder, (model = this.#engine.loadModel(folder)));
    return model;
  }

  async close(): Promise<void> {
    await this.#engine.close();
  }
}
