import { expect, it } from "vitest";
import { tracedFileCalls } from "./support/traced-files.js";

const blobs = new URL("../dist/store/blob-files.js", import.meta.url).href;
const files = import.meta.resolve("@tinker-ts/hub/files");
const engine = import.meta.resolve("@tinker-ts/engine");

const folders = new URL("../dist/checkpoints/state-folders.js", import.meta.url).href;

const hubDownload = new URL("../../hub/dist/hub/download.js", import.meta.url).href;
const sdkDownload = new URL("../../sdk/dist/checkpoints/download-file.js", import.meta.url).href;
const runFolder = new URL("../../sdk/dist/run-log/folder-writer.js", import.meta.url).href;
const weights = import.meta.resolve("@tinker-ts/hub/weights");

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

it("brings a file of the hub to disk before it gets its name", () => {
  const calls = tracedFileCalls(`
    import { existsSync } from "node:fs";
    import { downloadBlob } from ${JSON.stringify(hubDownload)};
    const file = { name: "a", url: "", etag: "none", sizeBytes: 3 };
    async function* chunks() { yield Buffer.from("abc"); }
    const request = async () => ({ status: 200, headers: new Headers(), chunks, cancel() {} });
    const retryPolicy = { maxAttempts: 1, firstDelayMs: 0, maxDelayMs: 0 };
    await downloadBlob(file, "blobs/a", { request, retryPolicy, onBytes() {} });
    if (!existsSync("blobs/a")) throw new Error("it is not there");
  `);
  const order = Object.keys(calls).filter((call) => ["fsync", "rename"].includes(call));
  expect(order).toEqual(["fsync", "rename"]);
});

it("brings the archive of a checkpoint to disk before it says that it is there", () => {
  const calls = tracedFileCalls(`
    import { downloadFile } from ${JSON.stringify(sdkDownload)};
    async function* parts() { yield Buffer.from("abc"); }
    const send = async () => ({ status: 200, headers: {}, body: Buffer.alloc(0), downloadMs: 0, parts: parts() });
    const connection = { runtime: {}, parts: { send, baseUrl: { origin: "http://localhost" } } };
    const { signal } = new AbortController();
    const getUrl = async () => "/archive";
    await downloadFile({ connection, getUrl, file: "a.tar", onProgress() {}, signal });
  `);
  expect(calls).toMatchObject({ fsync: 1 });
});

it("brings merged weights to disk before their folder gets its name", () => {
  const calls = tracedFileCalls(`
    import { writeSafetensors } from ${JSON.stringify(weights)};
    const read = async () => new Uint8Array(4);
    await writeSafetensors("a", [{ name: "w", dtype: "F32", shape: [1], data: read }], {});
  `);
  expect(calls).toMatchObject({ fsync: 2 });
});

it.each([true, false])("brings lines of a run to disk if they must last: %s", (durable) => {
  const calls = tracedFileCalls(`
    import { FolderWriter } from ${JSON.stringify(runFolder)};
    await new FolderWriter("run").append("checkpoints.jsonl", "{}\\n", { durable: ${durable} });
  `);
  expect(calls["fsync"]).toBe(durable ? 1 : undefined);
});
