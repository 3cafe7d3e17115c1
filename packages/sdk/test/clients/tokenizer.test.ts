import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { loadTokenizer, TinkerError } from "tinker-ts";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { bare, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const fixture = fileURLToPath(new URL("../fixtures/tokenizer", import.meta.url));
const read = (name: string) => readFile(path.join(fixture, name), "utf8");
const commit = "0123456789abcdef0123456789abcdef01234567";
const names = ["tokenizer.json", "tokenizer_config.json"];

let home = "";
let requests: IncomingMessage[] = [];
let hub: ReturnType<typeof createServer>;
let env: Record<string, string> = {};
let count = 0;
/** Loaded tokenizers are kept by name, so every test uses a name of its own. */
const freshName = () => `org/model-${count++}`;

/** Every repository of `org` holds the tokenizer; there is nothing else. */
const answerAsHub = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  requests.push(request);
  const url = request.url ?? "";
  const name = url.split("/").at(-1) ?? "";
  if (url.startsWith("/api/models/org/")) {
    const siblings = names.map((rfilename) => ({ rfilename }));
    response.end(JSON.stringify({ sha: commit, siblings }));
  } else if (url.startsWith("/org/") && names.includes(name)) {
    const body = await read(name);
    const headers = { etag: `"etag-of-${name}"`, "content-length": Buffer.byteLength(body) };
    response.writeHead(200, headers).end(request.method === "HEAD" ? undefined : body);
  } else {
    response.writeHead(404, { "x-error-code": "RepoNotFound" }).end();
  }
};

beforeEach(async () => {
  home = await mkdtemp(path.join(tmpdir(), "tinker-ts-hub-"));
  requests = [];
  hub = createServer((request, response) => void answerAsHub(request, response));
  hub.listen(0, "127.0.0.1");
  await once(hub, "listening");
  env = {
    HF_HOME: home,
    HF_TOKEN: "hf_secret",
    HF_ENDPOINT: `http://127.0.0.1:${(hub.address() as AddressInfo).port}`,
  };
});

afterEach(async () => {
  hub.closeAllConnections();
  hub.close();
  await once(hub, "close");
  await rm(home, { recursive: true });
});

describe("a tokenizer", () => {
  it("of a folder turns text into tokens and back", async () => {
    const tokenizer = await loadTokenizer(fixture, { env });
    expect([...tokenizer.encode("hello world")]).toEqual([1, 14, 19]);
    expect(tokenizer.decode([1, 14, 19])).toBe("<s>hello world");
    expect(tokenizer.namedTokens.eos).toEqual({ text: "</s>", id: 2 });
    expect(tokenizer.chatTemplates.get("default")).toBe("{{ messages }}");
    expect(requests).toEqual([]);
  });

  it("of the hub is downloaded once, with the token, into the cache", async () => {
    const name = freshName();
    const both = [loadTokenizer(name, { env }), loadTokenizer(name, { env })];
    const [tokenizer, shared] = await Promise.all(both);
    expect([...tokenizer!.encode("hello")]).toEqual([1, 14]);
    expect(shared).toBe(tokenizer);
    expect(await loadTokenizer(name, { env })).toBe(tokenizer);
    expect(requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      `GET /api/models/${name}/revision/main`,
      ...names.map((file) => `HEAD /${name}/resolve/${commit}/${file}`),
      ...names.map((file) => `GET /${name}/resolve/${commit}/${file}`),
    ]);
    expect(new Set(requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set(["Bearer hf_secret"]),
    );
    const repository = path.join(home, "hub", `models--${name.replace("/", "--")}`);
    expect(await readFile(path.join(repository, "refs", "main"), "utf8")).toBe(commit);
  });

  it("is loaded again for another cache", async () => {
    const name = freshName();
    await loadTokenizer(name, { env });
    const elsewhere = { ...env, HF_HOME: path.join(home, "elsewhere"), HF_HUB_OFFLINE: "1" };
    await expect(loadTokenizer(name, { env: elsewhere })).rejects.toThrow(/HF_HUB_OFFLINE/);
  });

  it("that does not exist is an error of this package, and is not cached", async () => {
    for (let attempt = 0; attempt < 2; attempt++) {
      const error = await loadTokenizer("nobody/nothing", { env }).catch(
        (caught: unknown) => caught,
      );
      expect(error).toBeInstanceOf(TinkerError);
      expect(error).toMatchObject({
        code: "tokenizer_unusable",
        message: expect.stringMatching(/^The tokenizer of nobody\/nothing cannot be loaded: /),
      });
      expect(requests).toHaveLength(attempt + 1);
    }
  });

  it("that one caller aborts is loaded for the other; that all abort is not", async () => {
    const held: ServerResponse[] = [];
    hub.removeAllListeners("request");
    hub.on("request", (request, response: ServerResponse) => {
      requests.push(request);
      held.push(response);
    });
    const name = freshName();
    const [first, second] = [new AbortController(), new AbortController()];
    const loads = [first, second].map(({ signal }) =>
      loadTokenizer(name, { env, signal }).catch((caught: unknown) => caught),
    );
    await once(hub, "request");
    first.abort(new Error("not needed"));
    expect(await loads[0]).toMatchObject({ message: "not needed" });
    expect(held[0]!.destroyed).toBe(false);
    const hungUp = once(held[0]!, "close");
    second.abort(new Error("nor here"));
    expect(await loads[1]).toMatchObject({ message: "nor here" });
    await hungUp;
    const again = loadTokenizer(name, { env });
    await once(hub, "request");
    held.at(-1)!.writeHead(404).end();
    await expect(again).rejects.toThrow(/cannot be loaded/);
  });
});

describe("the tokenizer of a model", () => {
  const rules = [
    [{ model_name: "org/NAME", tokenizer_id: null }, "org/NAME/revision/main"],
    [{ model_name: "org/NAME:long-context", tokenizer_id: null }, "org/NAME/revision/main"],
    [{ model_name: "org/NAME/variant", tokenizer_id: null }, "org/NAME/revision/main"],
    [{ model_name: "x", tokenizer_id: "org/NAME:rev" }, "org/NAME/revision/main"],
    [
      { model_name: "moonshotai/Kimi-K2.5-Text-Only", tokenizer_id: null },
      "moonshotai/Kimi-K2.5/revision/4d01dfe0332d63057c186e0b262165819efb6611",
    ],
    [
      { model_name: "meta-llama/Llama-3.1-8B", tokenizer_id: null },
      "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer/revision/main",
    ],
  ] as const;
  it.for(rules)("%j is resolved by the rules", async ([modelData, place], { service }) => {
    const name = `model-${count++}`;
    const named = JSON.parse(JSON.stringify(modelData).replaceAll("NAME", name)) as object;
    service.server.handle("getInfo", () => json({ model_id: "x", model_data: named }));
    const training = await service.client({ env }).createLoraTrainingClient({ baseModel: "m" });
    await training.getTokenizer().catch(() => {});
    expect(requests[0]?.url).toBe(`/api/models/${place.replaceAll("NAME", name)}`);
  });

  it("comes from a server that offers tokenizers, once", async ({ service }) => {
    const name = freshName();
    service.server.handle("getSampler", () => json({ sampler_id: "s", base_model: name }));
    service.server.handle("getTokenizer", async () =>
      json({
        model: name,
        tokenizer: JSON.parse(await read("tokenizer.json")) as unknown,
        tokenizer_config: null,
        chat_template: "served",
      }),
    );
    const sampling = await service.client({ env }).createSamplingClient({ baseModel: "m" });
    const tokenizer = await sampling.getTokenizer();
    expect(tokenizer.chatTemplates.get("default")).toBe("served");
    expect(await sampling.getTokenizer()).toBe(tokenizer);
    expect(service.server.requestsTo("getTokenizer").map((request) => request.path)).toEqual([
      `/api/v1/tokenizer?model=${encodeURIComponent(name)}`,
    ]);
    expect(requests).toEqual([]);
  });

  it("that the server sends in an unknown form is an error", async ({ service }) => {
    service.server.handle("getSampler", () => json({ sampler_id: "s", base_model: freshName() }));
    service.server.handle("getTokenizer", () => json({ model: "m", tokenizer: { model: 5 } }));
    const sampling = await service.client({ env }).createSamplingClient({ baseModel: "m" });
    await expect(sampling.getTokenizer()).rejects.toMatchObject({ code: "tokenizer_unusable" });
  });

  it("that the server does not have is taken from the cache", async ({ service }) => {
    const name = freshName();
    const repository = path.join(home, `hub/models--${name.replace("/", "--")}`);
    await cp(fixture, path.join(repository, "snapshots", commit), { recursive: true });
    await mkdir(path.join(repository, "refs"));
    await writeFile(path.join(repository, "refs/main"), commit);
    service.server.handle("getInfo", () =>
      json({ model_id: "x", model_data: { model_name: "x", tokenizer_id: name } }),
    );
    service.server.handle("getTokenizer", () => bare(404));
    const client = service.client({ env: { ...env, HF_HUB_OFFLINE: "1" } });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    expect([...(await training.getTokenizer()).encode("hello")]).toEqual([1, 14]);
    expect(requests).toEqual([]);
  });

  it("of a model without a name cannot be found", async ({ service }) => {
    service.server.handle("getInfo", () => json({ model_id: "x", model_data: {} }));
    const training = await service.client({ env }).createLoraTrainingClient({ baseModel: "m" });
    await expect(training.getTokenizer()).rejects.toThrow(/did not return the name/);
  });
});
