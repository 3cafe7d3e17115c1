import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import * as tar from "tar";
import type { DownloadProgress } from "tinker-ts";
import { afterEach, beforeEach, describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const checkpoint = "tinker://run/sampler_weights/final";
const weights = Buffer.alloc(300_000, "weights");

let folder = "";
let archive: Buffer;
let storage: ReturnType<typeof createServer>;
let asked: IncomingMessage[] = [];
/** Responses of the storage to its next requests; then it serves the archive. */
let misdeeds: ((request: IncomingMessage, response: ServerResponse) => void)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "tinker-ts-download-"));
  await mkdir(path.join(folder, "source/sub"), { recursive: true });
  await writeFile(path.join(folder, "source/adapter_config.json"), "{}");
  await writeFile(path.join(folder, "source/sub/adapter_model.safetensors"), weights);
  await tar.c({ file: path.join(folder, "a.tgz"), cwd: path.join(folder, "source"), gzip: true }, [
    ".",
  ]);
  archive = await readFile(path.join(folder, "a.tgz"));
  asked = [];
  misdeeds = [];
  storage = createServer((request, response) => {
    asked.push(request);
    (misdeeds.shift() ?? serve)(request, response);
  });
  storage.listen(0, "127.0.0.1");
  await once(storage, "listening");
});

afterEach(async () => {
  storage.closeAllConnections();
  storage.close();
  await once(storage, "close");
  await rm(folder, { recursive: true });
});

function serve(request: IncomingMessage, response: ServerResponse): void {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
  const body = archive.subarray(from);
  response.writeHead(from > 0 ? 206 : 200, {
    "content-length": body.length,
    etag: '"v1"',
    ...(from > 0
      ? { "content-range": `bytes ${from}-${archive.length - 1}/${archive.length}` }
      : {}),
  });
  response.end(body);
}

/** Promises everything and sends the first bytes only. */
function breakAfter(count: number) {
  return (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { "content-length": archive.length, etag: '"v1"' });
    response.write(archive.subarray(0, count), () => setImmediate(() => response.destroy()));
  };
}

const archiveUrl = () =>
  `http://127.0.0.1:${(storage.address() as AddressInfo).port}/archive?signature=1`;

const open = (service: FakeService) => {
  service.server.handle("getCheckpointArchiveUrl", () =>
    json({ url: archiveUrl(), expires: "2026-01-02T03:04:05Z" }),
  );
  return service.client().createRestClient();
};

const leftovers = async () => (await readdir(folder)).filter((name) => name.includes("target"));

describe("a download", () => {
  it("unpacks the checkpoint and reports its progress", async ({ service }) => {
    const directory = path.join(folder, "deep/target");
    const progress: DownloadProgress[] = [];
    const onProgress = (step: DownloadProgress): void => void progress.push(step);
    const result = await open(service).downloadCheckpoint(checkpoint, { directory, onProgress });
    expect(result.directory).toBe(directory);
    expect(result.archiveBytes).toBe(archive.length);
    expect(result.files.map((file) => path.posix.normalize(file)).toSorted()).toEqual([
      "adapter_config.json",
      "sub/adapter_model.safetensors",
    ]);
    expect(await readFile(path.join(directory, "sub/adapter_model.safetensors"))).toEqual(weights);
    expect(progress.at(-1)).toEqual({ receivedBytes: archive.length, totalBytes: archive.length });
    expect(asked[0]!.headers).not.toHaveProperty("x-api-key");
    expect(await readdir(path.join(folder, "deep"))).toEqual(["target"]);
  });

  it("uses the caller's fetch if there is one", async ({ service }) => {
    const fetched: string[] = [];
    const client = service.client({
      fetch: (request) => {
        fetched.push(request.url);
        if (request.url === archiveUrl()) return fetch(request);
        return Response.json({ url: archiveUrl(), expires: "2026-01-02T03:04:05Z" });
      },
    });
    const directory = path.join(folder, "target");
    await client.createRestClient().downloadCheckpoint(checkpoint, { directory });
    expect(fetched.at(-1)).toBe(archiveUrl());
  });

  it("resumes where the connection broke", async ({ service }) => {
    misdeeds = [breakAfter(500), breakAfter(200)];
    const directory = path.join(folder, "target");
    await open(service).downloadCheckpoint(checkpoint, { directory });
    expect(asked.map(({ headers }) => headers.range)).toEqual([
      undefined,
      "bytes=500-",
      // The second answer started anew, so the third goes on from what that brought.
      "bytes=200-",
    ]);
    expect(asked[1]!.headers["if-range"]).toBe('"v1"');
    expect(await readFile(path.join(directory, "sub/adapter_model.safetensors"))).toEqual(weights);
  });

  it.for([
    ["of another place", "bytes 100-199/1000"],
    ["of no place", undefined],
  ] as const)("restarts when it receives a part %s", async ([, range], { service }) => {
    const sendPart = (_: IncomingMessage, response: ServerResponse): void => {
      response.writeHead(206, range === undefined ? {} : { "content-range": range });
      response.end("something else");
    };
    misdeeds = [breakAfter(500), sendPart];
    const directory = path.join(folder, "target");
    await open(service).downloadCheckpoint(checkpoint, { directory });
    expect(asked.map(({ headers }) => headers.range)).toEqual([undefined, "bytes=500-", undefined]);
    expect(await readFile(path.join(directory, "sub/adapter_model.safetensors"))).toEqual(weights);
  });

  it("restarts when the archive has become shorter", async ({ service }) => {
    misdeeds = [breakAfter(500), (_, response) => void response.writeHead(416).end()];
    const directory = path.join(folder, "target");
    await open(service).downloadCheckpoint(checkpoint, { directory });
    expect(asked.map(({ headers }) => headers.range)).toEqual([undefined, "bytes=500-", undefined]);
  });

  it("requests a new address when the old one has expired", async ({ service }) => {
    misdeeds = [(_, response) => void response.writeHead(403).end("expired")];
    await open(service).downloadCheckpoint(checkpoint, { directory: path.join(folder, "target") });
    expect(service.server.requestsTo("getCheckpointArchiveUrl")).toHaveLength(2);
  });

  it("that keeps breaking fails and leaves no files", async ({ service }) => {
    misdeeds = Array.from({ length: 5 }, () => breakAfter(0));
    const directory = path.join(folder, "target");
    await expect(open(service).downloadCheckpoint(checkpoint, { directory })).rejects.toThrow(
      /^Connection error: /,
    );
    expect(asked).toHaveLength(5);
    expect(await leftovers()).toEqual([]);
  });

  it.for([404, 400])("of status %i fails at once", async (status, { service }) => {
    misdeeds = [(_, response) => void response.writeHead(status).end("no")];
    const directory = path.join(folder, "target");
    await expect(open(service).downloadCheckpoint(checkpoint, { directory })).rejects.toMatchObject(
      {
        status,
      },
    );
    expect(asked).toHaveLength(1);
  });

  it("does not touch an existing folder without overwrite", async ({ service }) => {
    const directory = path.join(folder, "target");
    await mkdir(directory);
    await writeFile(path.join(directory, "precious"), "x");
    const rest = open(service);
    await expect(rest.downloadCheckpoint(checkpoint, { directory })).rejects.toThrow(
      /^directory: .*overwrite: true/,
    );
    expect(await readdir(directory)).toEqual(["precious"]);
    expect(asked).toEqual([]);
    await rest.downloadCheckpoint(checkpoint, { directory, overwrite: true });
    expect(await readdir(directory)).toEqual(["adapter_config.json", "sub"]);
  });

  it("keeps the old folder when the download fails", async ({ service }) => {
    const directory = path.join(folder, "target");
    await mkdir(directory);
    await writeFile(path.join(directory, "precious"), "x");
    archive = Buffer.from("this is no archive");
    await expect(
      open(service).downloadCheckpoint(checkpoint, { directory, overwrite: true }),
    ).rejects.toThrow(/damaged/);
    expect(await readdir(directory)).toEqual(["precious"]);
    expect(await leftovers()).toEqual(["target"]);
  });

  it("can be cancelled", async ({ service }) => {
    misdeeds = [(_, response) => void response.writeHead(200).write("x")];
    const controller = new AbortController();
    const directory = path.join(folder, "target");
    const downloading = open(service).downloadCheckpoint(checkpoint, {
      directory,
      signal: controller.signal,
      onProgress: () => controller.abort(new Error("enough")),
    });
    await expect(downloading).rejects.toThrow("enough");
    while ((await leftovers()).length > 0) await new Promise(setImmediate);
  });
});

describe("an archive", () => {
  /** One entry of a tar file, written by hand, because libraries refuse to write such things. */
  const entry = (name: string, type: string, link = "") => {
    const header = Buffer.alloc(512);
    header.write(name, 0);
    header.write("0000644\0", 100);
    header.write("00000000000\0", 124);
    header.write("00000000000\0", 136);
    header.write("        ", 148);
    header.write(type, 156);
    header.write(link, 157);
    header.write("ustar\x0000", 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return header;
  };
  const end = Buffer.alloc(1024);

  it.for([
    ["a symbolic link", entry("link", "2", "/etc/passwd"), /SymbolicLink/],
    ["a hard link", entry("link", "1", "adapter_config.json"), /Link/],
    ["a device", entry("device", "3"), /CharacterDevice/],
    ["a path upwards", entry("../evil", "0"), /leads outside/],
    ["a path upwards in the middle", entry("a/../../evil", "0"), /leads outside/],
    ["an absolute path", entry("/tmp/evil", "0"), /leads outside/],
  ] as const)("with %s is refused as a whole", async ([, bad, message], { service }) => {
    archive = Buffer.concat([entry("adapter_config.json", "0"), bad, end]);
    const directory = path.join(folder, "target");
    await expect(open(service).downloadCheckpoint(checkpoint, { directory })).rejects.toThrow(
      message,
    );
    expect(await leftovers()).toEqual([]);
    expect(await readdir(folder)).not.toContain("evil");
  });

  it("that is cut off is refused", async ({ service }) => {
    archive = archive.subarray(0, archive.length - 400);
    const directory = path.join(folder, "target");
    await expect(open(service).downloadCheckpoint(checkpoint, { directory })).rejects.toThrow(
      /damaged/,
    );
    expect(await leftovers()).toEqual([]);
  });
});
