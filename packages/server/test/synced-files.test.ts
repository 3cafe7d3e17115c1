import { expect, it } from "vitest";
import { tracedFileCalls } from "./support/traced-files.js";

const blobs = new URL("../dist/store/blob-files.js", import.meta.url).href;
const files = import.meta.resolve("@tinker-ts/hub/files");
const engine = import.meta.resolve("@tinker-ts/engine");

const folders = new URL("../dist/checkpoints/state-folders.js", import.meta.url).href;

const putBlob = (isSynced: boolean): string => `
  import { BlobFiles } from ${JSON.stringify(blobs)};
  await new BlobFiles("blobs", { isSynced: ${isSynced} }).put(new Uint8Array(100));
`;

it("brings blobs and their folder to disk where a loss of power must not cost them", () => {
  expect(tracedFileCalls(putBlob(true))).toMatchObject({ fdatasync: 1, fsync: 1 });
  const { fdatasync, fsync } = tracedFileCalls(putBlob(false));
  expect([fdatasync, fsync]).toEqual([undefined, undefined]);
});

it("brings a file to disk before it gets its name, and the name after", () => {
  const calls = tracedFileCalls(`
    import { writeFile } from "node:fs/promises";
    import { writeFileAtomically } from ${JSON.stringify(files)};
    await writeFileAtomically("a", (file) => writeFile(file, "x"));
  `);
  expect(calls["fsync"]).toBe(2);
});

it("brings every file of a folder to disk, the folders, and the name", () => {
  const calls = tracedFileCalls(`
    import { mkdir, writeFile } from "node:fs/promises";
    import { writeFolderAtomically } from ${JSON.stringify(files)};
    await writeFolderAtomically("folder", false, async (folder) => {
      await mkdir(folder + "/inner");
      for (const name of ["a", "b", "inner/c"]) await writeFile(folder + "/" + name, "x");
    });
  `);
  // Three files, two folders, and the one that holds the name.
  expect(calls["fsync"]).toBe(6);
});

it("brings the weights of an adapter to disk with everything beside them", () => {
  const calls = tracedFileCalls(`
    import { writeSafetensors } from ${JSON.stringify(engine)};
    const data = new Float32Array(4);
    await writeSafetensors("w.safetensors", [{ name: "w", shape: [4], data, dtype: "F32" }], {});
  `);
  expect(calls["fsync"]).toBe(2);
});

it("takes the name of a folder of weights away before it deletes what is in it", () => {
  const calls = tracedFileCalls(`
    import { mkdirSync, writeFileSync, existsSync } from "node:fs";
    import { StateFolders } from ${JSON.stringify(folders)};
    mkdirSync("states/a", { recursive: true });
    writeFileSync("states/a/manifest.json", "{}");
    await new StateFolders("states").remove(["a", "b"]);
    if (existsSync("states/a")) throw new Error("it is still there");
  `);
  // In the order in which each was called first.
  const order = Object.keys(calls).filter((call) => ["rename", "unlink"].includes(call));
  expect(order).toEqual(["rename", "unlink"]);
});
