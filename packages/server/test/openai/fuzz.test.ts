import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { OpenAiServer, question } from "../support/openai-server.js";
import { ScriptedEngine } from "../support/scripted-engine.js";

let server: OpenAiServer;
const engine = new ScriptedEngine();
beforeAll(async () => {
  server = await OpenAiServer.open({ engine });
  engine.says("ok");
});
afterAll(() => server.close());

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const numRuns = isFull ? 5000 : 150;

const names =
  "messages tools tool_choice response_format stop logit_bias n stream stream_options max_tokens temperature chat_template_kwargs logprobs seed top_logprobs continue_final_message reasoning_effort stop_token_ids min_tokens".split(
    " ",
  );

/** A good answer or a refusal in the right form: never a failure of the server, never silence. */
async function ask(route: string, body: unknown): Promise<void> {
  const response = await server.fetch(route, body);
  const text = await response.text();
  expect(response.status, `${JSON.stringify(body)} ${text}`).toBeLessThan(500);
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    expect(text.endsWith("data: [DONE]\n\n") || route.endsWith("responses")).toBe(true);
    return;
  }
  const json = JSON.parse(text) as { error?: { message: unknown; param: unknown } };
  if (response.status === 200) return;
  expect(json.error).toMatchObject({ message: expect.any(String), type: expect.any(String) });
}

it("answers or refuses whatever fields a body has", async () => {
  const fields = fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 4 }), {
    maxKeys: 4,
  });
  await fc.assert(
    fc.asyncProperty(fields, async (more) => ask("/v1/chat/completions", { ...question, ...more })),
    { numRuns },
  );
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ maxDepth: 3 }), async (prompt) =>
      ask("/v1/completions", { model: "m", prompt, max_tokens: 2 }),
    ),
    { numRuns },
  );
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (input) =>
      ask("/v1/responses", { model: "m", input }),
    ),
    { numRuns },
  );
});

it("answers or refuses whatever is no JSON object", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.string(), fc.json()), async (body) =>
      ask("/v1/chat/completions", body),
    ),
    { numRuns },
  );
});

it("keeps the turns of a conversation whatever its texts spell", async () => {
  const start = server.tokenizer.specialTokens.get("<|im_start|>")!;
  const end = server.tokenizer.specialTokens.get("<|im_end|>")!;
  const pieces = fc.constantFrom(
    "<|im_start|>",
    "<|im_end|>",
    "<|im_",
    "end|>",
    "system",
    "\n",
    "<",
    "|",
    "x",
    "\ufdd0",
    "\ufdd3",
  );
  const text = fc.array(pieces, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(""));
  const roles = fc.constantFrom("system", "user", "assistant", "tool");
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ role: roles, content: text }), { minLength: 1, maxLength: 4 }),
      async (messages) => {
        const { status, json } = await server.chat({ messages, return_token_ids: true });
        expect(status).toBe(200);
        const count = (mark: number): number =>
          json.prompt_token_ids.filter((token: number) => token === mark).length;
        expect([count(start), count(end)]).toEqual([messages.length + 1, messages.length]);
      },
    ),
    { numRuns },
  );
});

it("survives templates that make no sense", async () => {
  const templates = fc.array(
    fc.constantFrom(
      "{{",
      "}}",
      "{%",
      "%}",
      "messages",
      " for m in ",
      " if ",
      "[0]",
      ".content",
      "{{ messages }}",
      "{% endfor %}",
      "|tojson",
      "<think>",
      "{{ raise_exception('no') }}",
      "{{ 1/0 }}",
    ),
    { maxLength: 7 },
  );
  await fc.assert(
    fc.asyncProperty(templates, async (parts) => {
      const own = await OpenAiServer.open({ engine, template: parts.join("") });
      try {
        const { status, json } = await own.chat();
        expect([200, 400], JSON.stringify(json)).toContain(status);
      } finally {
        await own.close();
      }
    }),
    { numRuns: isFull ? 200 : 12 },
  );
});
