import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach } from "vitest";

/** A fresh folder for each test of the calling file; the returned function gives paths inside it. */
export function useTemporaryFolder(): (...parts: string[]) => string {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "tinker-ts-test-"));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true, force: true });
  });
  return (...parts) => path.join(folder, ...parts);
}
