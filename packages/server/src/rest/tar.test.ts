import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as tar from "tar";
import { expect, it } from "vitest";
import { tarStream } from "./tar.js";

it("makes archives that others can read, whatever the sizes", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-tar-"));
  try {
    const sizes = [0, 1, 511, 512, 513, 300_000];
    const entries = sizes.map((size) => {
      const file = { name: `file-${size}.bin`, path: path.join(folder, `in-${size}`) };
      writeFileSync(file.path, Buffer.alloc(size, size % 251));
      return file;
    });
    const parts: Uint8Array[] = [];
    for await (const part of tarStream(entries)) parts.push(part);
    const archive = path.join(folder, "archive.tar");
    writeFileSync(archive, Buffer.concat(parts));
    await tar.extract({ file: archive, cwd: folder, strict: true });
    for (const { name, path: source } of entries) {
      expect(readFileSync(path.join(folder, name)).equals(readFileSync(source))).toBe(true);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
