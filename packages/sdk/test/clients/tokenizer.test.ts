import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { loadTokenizer } from "tinker-ts";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const fixture = fileURLToPath(new URL("../fixtures/tokenizer", import.meta.url));
const read = (name: string) => readFile(path.join(fixture, name), "utf8");
const commit = "0123456789abcdef0123456789abcdef01234567";

let home = "";
let requests: IncomingMessage[] = [];
let hub: ReturnType<typeof createServer>;
let env: Record<string, string> = {};
let count = 0;
/** Loaded tokenizers are kept by name, so every test uses a name of its own. */
const freshName = () => `org/model-${count++}`;

beforeEach(async () => {
  home = await mkdtemp(path.join(tmpdir(), "tinker-ts-hub-"));
  requests = [];
  hub = createServer((request, response) => {
    requests.push(request);
    const name = request.url?.split("/").at(-1) ?? "";
    const isKnown = request.url?.startsWith("/org/") && name !== "chat_template.jinja";
    if (!isKnown) return response.writeHead(404).end();
    void read(name).then((text) => response.writeHead(200, { "x-repo-commit": commit }).end(text));
    return undefined;
  });
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
  it("turns text into tokens and back", async () => {
    const tokenizer = await loadTokenizer(fixture, { env });
    expect(tokenizer.encode("hello world")).toEqual([1, 14, 19]);
    expect(tokenizer.encode("hello world", { addSpecialTokens: false })).toEqual([14, 19]);
    expect(tokenizer.decode([1, 14, 19])).toBe("<s>hello world");
    expect(tokenizer.decode(Int32Array.of(1, 14, 19), { skipSpecialTokens: true })).toBe(
      "hello world",
    );
    expect(tokenizer).toMatchObject({
      id: fixture,
      specialTokens: { bos: "<s>", eos: "</s>", pad: null, unk: "<unk>" },
      bosTokenId: 1,
      eosTokenId: 2,
      padTokenId: undefined,
      vocabSize: 20,
      chatTemplate: "{{ messages }}",
    });
    expect(tokenizer.tokenToId("hello")).toBe(14);
    expect(tokenizer.idToToken(14)).toBe("hello");
    expect(tokenizer.tokenToId("absent")).toBeUndefined();
  });

  it("is downloaded once, with the token, and kept where Python finds it", async () => {
    const name = freshName();
    const tokenizer = await loadTokenizer(name, { env });
    expect(tokenizer.encode("hello")).toEqual([1, 14]);
    expect(requests.map(({ url }) => url)).toEqual([
      `/${name}/resolve/main/tokenizer.json`,
      `/${name}/resolve/main/tokenizer_config.json`,
      `/${name}/resolve/main/chat_template.jinja`,
    ]);
    expect(requests[0]!.headers.authorization).toBe("Bearer hf_secret");
    expect(await loadTokenizer(name, { env })).toBe(tokenizer);
    const repository = path.join(home, "hub", `models--${name.replace("/", "--")}`);
    expect(await readFile(path.join(repository, "refs", "main"), "utf8")).toBe(commit);
    const kept = path.join(repository, "snapshots", commit, "tokenizer.json");
    expect(await readFile(kept, "utf8")).toBe(await read("tokenizer.json"));
  });

  it("is taken from the cache without asking anybody", async () => {
    const name = freshName();
    const repository = path.join(home, "hub", `models--${name.replace("/", "--")}`);
    await mkdir(path.join(repository, "refs"), { recursive: true });
    await mkdir(path.join(repository, "snapshots", "abc"), { recursive: true });
    await writeFile(path.join(repository, "refs", "main"), "abc\n");
    await writeFile(
      path.join(repository, "snapshots/abc/tokenizer.json"),
      await read("tokenizer.json"),
    );
    await writeFile(path.join(repository, "snapshots/abc/chat_template.jinja"), "from a file");
    const tokenizer = await loadTokenizer(name, { env: { ...env, HF_HUB_OFFLINE: "1" } });
    expect(tokenizer.chatTemplate).toBe("from a file");
    expect(requests).toEqual([]);
  });

  it("that nobody has is an error that says where it was looked for", async () => {
    await expect(loadTokenizer("nobody/nothing", { env })).rejects.toThrow(
      /no tokenizer.json for nobody\/nothing: .*cache and on the hub/,
    );
    const offline = { ...env, HF_HUB_OFFLINE: "1" };
    await expect(loadTokenizer(freshName(), { env: offline })).rejects.toThrow(/HF_HUB_OFFLINE/);
    // A failure is not kept.
    await expect(loadTokenizer("nobody/nothing", { env })).rejects.toThrow(/no tokenizer.json/);
  });
});

describe("the tokenizer of a model", () => {
  const rules = [
    [{ model_name: "org/NAME", tokenizer_id: null }, "/org/NAME/resolve/main/"],
    [{ model_name: "org/NAME:long-context", tokenizer_id: null }, "/org/NAME/resolve/main/"],
    [{ model_name: "org/NAME/variant", tokenizer_id: null }, "/org/NAME/resolve/main/"],
    [{ model_name: "x", tokenizer_id: "org/NAME:rev" }, "/org/NAME/resolve/main/"],
    [
      { model_name: "moonshotai/Kimi-K2.5-Text-Only", tokenizer_id: null },
      "/moonshotai/Kimi-K2.5/resolve/4d01dfe0332d63057c186e0b262165819efb6611/",
    ],
    [
      { model_name: "meta-llama/Llama-3.1-8B", tokenizer_id: null },
      "/thinkingmachineslabinc/meta-llama-3-instruct-tokenizer/resolve/main/",
    ],
  ] as const;
  it.for(rules)("%j is looked for by the rules", async ([modelData, prefix], { service }) => {
    const name = `model-${count++}`;
    const named = JSON.parse(JSON.stringify(modelData).replaceAll("NAME", name)) as object;
    service.server.handle("getInfo", () => json({ model_id: "x", model_data: named }));
    const training = await service.client({ env }).createLoraTrainingClient({ baseModel: "m" });
    await training.getTokenizer().catch(() => {});
    expect(requests[0]?.url).toBe(`${prefix.replaceAll("NAME", name)}tokenizer.json`);
  });

  it("comes from the server where it offers tokenizers", async ({ service }) => {
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
    expect(tokenizer).toMatchObject({ chatTemplate: "served", id: name });
    expect(service.server.requestsTo("getTokenizer")[0]!.path).toBe(
      `/api/v1/tokenizer?model=${encodeURIComponent(name)}`,
    );
    expect(requests).toEqual([]);
  });

  it("of a model without a name cannot be found", async ({ service }) => {
    service.server.handle("getInfo", () => json({ model_id: "x", model_data: {} }));
    const training = await service.client({ env }).createLoraTrainingClient({ baseModel: "m" });
    await expect(training.getTokenizer()).rejects.toThrow(/does not tell the name/);
  });
});
