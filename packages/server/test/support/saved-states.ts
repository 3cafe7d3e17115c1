import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** Digests of the weights and of the optimizer state of all saved checkpoints. */
export function savedStates(dataDir: string): string[] {
  const root = path.join(dataDir, "checkpoints");
  const digest = (file: string): string =>
    createHash("sha256").update(readFileSync(file)).digest("hex");
  return readdirSync(root)
    .map((folder) => path.join(root, folder))
    .filter((folder) => readdirSync(folder).includes("optimizer.safetensors"))
    .map(
      (folder) =>
        digest(path.join(folder, "adapter_model.safetensors")) +
        digest(path.join(folder, "optimizer.safetensors")),
    )
    .toSorted();
}
