import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { RequestFailedError, ServiceClient } from "tinker-ts";
import { expect, it } from "vitest";
import { realModels } from "./support/real-models.js";
import { ServerProcess } from "./support/server-process.js";

it.skipIf(process.platform === "win32")(
  "a save without room is refused with the reason, leaves nothing half-written and spoils nothing",
  async () => {
    const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-full-"));
    const options = { dataDir, models: realModels, logLevel: "silent" } as const;
    const server = new ServerProcess(options, { maxFileBytes: 2_000_000 });
    await server.start();
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const service = new ServiceClient({ baseUrl, apiKey: "tml-full", telemetry: false });
    try {
      const lora = { baseModel: "qwen3", seed: 1 };
      const large = await service.createLoraTrainingClient({ ...lora, rank: 256 });
      const small = await service.createLoraTrainingClient({ ...lora, rank: 4 });
      const failure: unknown = await large.saveState("none").then(undefined, (error) => error);
      expect(failure).toBeInstanceOf(RequestFailedError);
      expect(failure).toMatchObject({
        category: "server",
        message: expect.stringContaining("cannot write to its disk") as string,
      });
      expect(readdirSync(path.join(dataDir, "checkpoints"))).toEqual([]);
      await small.saveState("kept");
      const data = [
        { modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] } },
      ];
      expect((await large.forward(data, "cross_entropy")).metrics).toHaveProperty("loss:sum");
      const { checkpoints } = await service.createRestClient().listCheckpoints(large.modelId);
      expect(checkpoints).toEqual([]);
    } finally {
      await service.close();
      await server.kill();
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
  60_000,
);
