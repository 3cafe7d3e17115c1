import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createAdaptorServer } from "@hono/node-server";
import { loadTokenizer, type Tokenizer } from "@tinker-ts/hub";
import OpenAI from "openai";
import { openApp, type App } from "../../src/app.js";
import { loadEngineKit } from "../../src/engine-host/load-engine-kit.js";
import { createLogger } from "../../src/log/logger.js";
import type { AppOptions } from "../../src/options.js";
import { copySprout, qwenStyle } from "./qwen-style.js";
import { ScriptedEngine, scriptedKit } from "./scripted-engine.js";

/** JSON that a test looks into. */
export type Loose = ReturnType<typeof JSON.parse>;

/** What a test may set. */
export interface OpenAiServerOptions extends AppOptions {
  /** Answers instead of the real engine. */
  readonly engine?: ScriptedEngine;
  /** @default one with tools and thoughts */
  readonly template?: string | null;
}

/** A server on loopback with the model "m", and ways to call it. */
export class OpenAiServer {
  readonly url: string;
  readonly folder: string;
  readonly tokenizer: Tokenizer;
  readonly logLines: string[];
  readonly app: App;
  readonly #close: () => Promise<void>;

  private constructor(parts: {
    url: string;
    folder: string;
    tokenizer: Tokenizer;
    logLines: string[];
    app: App;
    close: () => Promise<void>;
  }) {
    this.url = parts.url;
    this.folder = parts.folder;
    this.tokenizer = parts.tokenizer;
    this.logLines = parts.logLines;
    this.app = parts.app;
    this.#close = parts.close;
  }

  static async open(options: OpenAiServerOptions = {}): Promise<OpenAiServer> {
    const { engine, template = qwenStyle, ...given } = options;
    const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-openai-"));
    const modelFolder = copySprout(path.join(folder, "model"), template);
    const tokenizer = await loadTokenizer(modelFolder);
    engine?.setTokenizer(tokenizer);
    const logLines: string[] = [];
    const app = await openApp(
      {
        dataDir: path.join(folder, "data"),
        models: { m: modelFolder },
        logger: createLogger("info", (line) => logLines.push(line)),
        threads: 1,
        ...given,
      },
      {
        allowAnyModel: false,
        logLevel: "silent",
        closesOldSessions: false,
        kind: "server",
        loadKit: async (all) => (engine ? scriptedKit(engine) : loadEngineKit(all)),
      },
    );
    const http = createAdaptorServer({ fetch: (request) => app.handle(request) });
    await new Promise<void>((resolve) => {
      http.listen(0, "127.0.0.1", resolve);
    });
    const address = http.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const close = async (): Promise<void> => {
      await app.close();
      if ("closeAllConnections" in http) http.closeAllConnections();
      await new Promise<void>((resolve) => {
        http.close(() => resolve());
      });
      rmSync(folder, { recursive: true, force: true });
    };
    const url = `http://127.0.0.1:${port}`;
    return new OpenAiServer({ url, folder, tokenizer, logLines, app, close });
  }

  /** The official client. */
  client(options: ConstructorParameters<typeof OpenAI>[0] = {}): OpenAI {
    return new OpenAI({ baseURL: `${this.url}/v1`, apiKey: "any", maxRetries: 0, ...options });
  }

  /** Posts a body and returns the raw response. */
  fetch(route: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}${route}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...init,
    });
  }

  /** Posts a body and returns status and parsed JSON. */
  async post(route: string, body: unknown): Promise<{ status: number; json: Loose }> {
    const response = await this.fetch(route, body);
    return { status: response.status, json: await response.json() };
  }

  /** A chat completion with one question, greedy unless said otherwise. */
  chat(more: Record<string, unknown> = {}): Promise<{ status: number; json: Loose }> {
    return this.post("/v1/chat/completions", { ...question, ...more });
  }

  /** A completion, greedy unless said otherwise. */
  complete(more: Record<string, unknown> = {}): Promise<{ status: number; json: Loose }> {
    return this.post("/v1/completions", { model: "m", prompt: "The cat", temperature: 0, ...more });
  }

  /** The events of a streamed chat, parsed, and whether the end was marked. */
  stream(more: Record<string, unknown> = {}, route = "/v1/chat/completions"): Promise<Streamed> {
    const body = route.endsWith("/chat/completions")
      ? { ...question, ...more }
      : { model: "m", prompt: "The cat", temperature: 0, ...more };
    return this.#stream(route, { ...body, stream: true });
  }

  async #stream(route: string, body: unknown): Promise<Streamed> {
    const response = await this.fetch(route, body);
    const text = await response.text();
    const lines = text.split("\n\n").filter((line) => line !== "");
    const isDone = lines.at(-1) === "data: [DONE]";
    const events = lines
      .filter((line) => line.startsWith("data: {"))
      .map((line) => JSON.parse(line.slice(6)));
    return { response, text, events, isDone };
  }

  close(): Promise<void> {
    return this.#close();
  }
}

/** A streamed answer. */
export interface Streamed {
  readonly response: Response;
  readonly text: string;
  readonly events: Loose[];
  readonly isDone: boolean;
}

/** A request that every test can begin with. */
export const question = {
  model: "m",
  messages: [{ role: "user", content: "Hello" }],
  temperature: 0,
  max_tokens: 30,
};

/** Puts the deltas of a choice together, as clients do. */
export function joined(events: readonly Loose[], index = 0) {
  const result = {
    role: "",
    content: "",
    reasoning: "",
    calls: [] as { id: string; type: string; name: string; arguments: string }[],
    finishReason: null as string | null,
    stopReason: undefined as unknown,
    tokens: [] as number[],
    logprobs: [] as unknown[],
  };
  for (const event of events) {
    for (const choice of event.choices ?? []) {
      if (choice.index !== index) continue;
      const { delta } = choice;
      result.role += delta.role ?? "";
      result.content += delta.content ?? "";
      result.reasoning += delta.reasoning_content ?? "";
      for (const call of delta.tool_calls ?? []) {
        const known = (result.calls[call.index] ??= { id: "", type: "", name: "", arguments: "" });
        known.id += call.id ?? "";
        known.type += call.type ?? "";
        known.name += call.function.name ?? "";
        known.arguments += call.function.arguments;
      }
      result.tokens.push(...(choice.token_ids ?? []));
      result.logprobs.push(...(choice.logprobs?.content ?? []));
      if (choice.finish_reason !== null) {
        result.finishReason = choice.finish_reason;
        result.stopReason = choice.stop_reason;
      }
    }
  }
  return result;
}
