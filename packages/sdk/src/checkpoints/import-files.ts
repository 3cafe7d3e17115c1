import { DependencyError } from "../errors/dependency-error.js";

/** What this project's packages share about files: downloads, and files that appear as a whole. */
export async function importFiles(): Promise<typeof import("@tinker-ts/hub/files")> {
  try {
    return await import("@tinker-ts/hub/files");
  } catch (cause) {
    throw new DependencyError("@tinker-ts/hub", "to download checkpoints", { cause });
  }
}
