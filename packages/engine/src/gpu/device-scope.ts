import type { BufferPool } from "../execution/buffer-pool.js";
import { DeviceArray, type ValueMemory } from "../execution/device-array.js";
import type { DeviceMemory } from "./device-memory.js";
import type { PortData, PortValues } from "../execution/program.js";

/** Device memory of one pass: everything taken is returned when the pass ends, also when it fails. */
export class DeviceScope implements ValueMemory<DeviceArray> {
  readonly #memory: DeviceMemory;
  readonly #pool: BufferPool;
  readonly #taken = new Set<DeviceArray>();

  /** `pool` holds the processor's arrays that values are brought from and fetched to. */
  constructor(memory: DeviceMemory, pool: BufferPool) {
    this.#memory = memory;
    this.#pool = pool;
  }

  async take(length: number): Promise<DeviceArray> {
    return this.#keep(await this.#memory.take(length));
  }

  giveBack(...values: readonly DeviceArray[]): void {
    for (const array of values) this.#taken.delete(array);
    this.#memory.giveBack(...values);
  }

  clear(values: DeviceArray): Promise<void> {
    return this.#memory.clear(values);
  }

  copyRows(...copy: Parameters<DeviceMemory["copyRows"]>): Promise<void> {
    return this.#memory.copyRows(...copy);
  }

  async bring(values: Float32Array): Promise<DeviceArray> {
    const array = this.#keep(await this.#memory.upload(values));
    this.#pool.giveBack(values);
    return array;
  }

  async fetch(values: DeviceArray): Promise<Float32Array> {
    const array = this.#pool.take(values.length);
    await this.#memory.download(values, array);
    this.giveBack(values);
    return array;
  }

  async place(feeds: PortValues): Promise<PortValues> {
    const placed: Record<string, PortData> = {};
    for (const [name, data] of Object.entries(feeds)) {
      placed[name] =
        data instanceof DeviceArray ? data : this.#keep(await this.#memory.upload(data));
    }
    return placed;
  }

  /** Returns all arrays that are still held. */
  end(): void {
    this.giveBack(...this.#taken);
  }

  #keep(array: DeviceArray): DeviceArray {
    this.#taken.add(array);
    return array;
  }
}
