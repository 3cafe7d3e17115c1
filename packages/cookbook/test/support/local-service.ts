import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Datum, ServiceClient } from "tinker-ts";

/** A model of a few thousand parameters. */
export const tinyModel = fileURLToPath(
  new URL("../../../engine/test/fixtures/qwen3/model", import.meta.url),
);

/** The embedded engine with a data directory of its own, and a folder for runs; one per process. */
export class LocalPlace {
  readonly folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-cookbook-"));
  readonly service: ServiceClient;

  constructor() {
    // The engine is the process's, and so is its directory.
    process.env["TINKER_TS_DATA_DIR"] = path.join(this.folder, "data");
    this.service = new ServiceClient({ baseUrl: "local:" });
  }

  file(name: string): string {
    return path.join(this.folder, name);
  }

  weightsOf(checkpointPath: string | undefined): Promise<string> {
    return hashOfWeights(this.service, checkpointPath);
  }

  async close(): Promise<void> {
    await this.service.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A hash of the adapter that a checkpoint holds. */
export async function hashOfWeights(
  service: ServiceClient,
  checkpointPath: string | undefined,
): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-archive-"));
  try {
    const directory = path.join(folder, "checkpoint");
    const rest = service.createRestClient();
    const { files } = await rest.downloadCheckpoint(checkpointPath!, { directory });
    const weights = files.find((name) => name.endsWith("adapter_model.safetensors"))!;
    const content = readFileSync(path.join(directory, weights));
    return createHash("sha256").update(content).digest("hex");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Sequences of numbers that go up by one, each beginning elsewhere: something that can be learned. */
export function countingData(batchesPerEpoch: number, batchSize = 2) {
  return {
    batchesPerEpoch,
    batch: (epoch: number, index: number): Datum[] =>
      Array.from({ length: batchSize }, (_, place) => {
        const first = 5 + ((epoch * 7 + index * batchSize + place) % 20);
        const tokens = Array.from({ length: 8 }, (_unused, offset) => first + offset);
        return new Datum({
          modelInput: tokens.slice(0, -1),
          lossFnInputs: {
            target_tokens: tokens.slice(1),
            weights: tokens.slice(1).map((_unused, offset) => (offset < 2 ? 0 : 0.2)),
          },
        });
      }),
  };
}
