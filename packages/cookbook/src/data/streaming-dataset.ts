import { ArgumentError, type Datum } from "tinker-ts";
import type { Conversation } from "./conversation.js";
import { conversationToData, type Dataset, type DatasetOptions } from "./dataset.js";
import { seededRandom } from "./random.js";

/** Options of a `StreamingDataset`. */
export interface StreamingDatasetOptions extends DatasetOptions {
  /** Opens the conversations from the beginning, always in the same order. */
  readonly open: (epoch: number) => AsyncIterable<Conversation>;
  /** The number of batches of an epoch; the stream must have as many. */
  readonly batchesPerEpoch: number;
  /** The size of the shuffle buffer in conversations; more mix better and take more memory. @default 10000 */
  readonly bufferSize?: number | undefined;
}

/**
 * Conversations from a stream, shuffled in a buffer. Batches are read in order: a later one skips rows, an earlier one or
 * one of another epoch starts from the beginning.
 */
export class StreamingDataset implements Dataset {
  readonly batchesPerEpoch: number;
  readonly #options: StreamingDatasetOptions;
  #reading: { epoch: number; next: number; rows: AsyncIterator<Conversation> } | undefined;

  constructor(options: StreamingDatasetOptions) {
    if (!Number.isSafeInteger(options.batchesPerEpoch) || options.batchesPerEpoch < 1) {
      throw new ArgumentError("batchesPerEpoch", "must be an integer of at least 1");
    }
    this.#options = options;
    this.batchesPerEpoch = options.batchesPerEpoch;
  }

  async batch(epoch: number, index: number): Promise<readonly Datum[]> {
    if (!this.#reading || this.#reading.epoch !== epoch || this.#reading.next > index) {
      await this.#reading?.rows.return?.();
      this.#reading = { epoch, next: 0, rows: this.#shuffled(epoch) };
    }
    const reading = this.#reading;
    for (;;) {
      const batch = await this.#take(reading.rows);
      if (!batch) {
        throw new ArgumentError(
          "batchesPerEpoch",
          `the stream ended after ${reading.next} of ${this.batchesPerEpoch} batches`,
        );
      }
      if (reading.next++ === index) {
        return batch.flatMap((row) => conversationToData(row, this.#options));
      }
    }
  }

  async #take(rows: AsyncIterator<Conversation>): Promise<Conversation[] | undefined> {
    const batch: Conversation[] = [];
    while (batch.length < this.#options.batchSize) {
      const { done, value } = await rows.next();
      if (done) return undefined;
      batch.push(value);
    }
    return batch;
  }

  async *#shuffled(epoch: number): AsyncGenerator<Conversation> {
    const { open, bufferSize = 10_000, seed = 0, shuffle = true } = this.#options;
    const random = seededRandom(seed, epoch);
    const buffer: Conversation[] = [];
    for await (const row of open(epoch)) {
      if (!shuffle) {
        yield row;
        continue;
      }
      if (buffer.length < bufferSize) {
        buffer.push(row);
        continue;
      }
      const place = Math.floor(random() * buffer.length);
      yield buffer[place]!;
      buffer[place] = row;
    }
    while (buffer.length > 0) {
      const place = Math.floor(random() * buffer.length);
      const [row] = buffer.splice(place, 1);
      yield row!;
    }
  }
}
