import { credentialOf, type Authenticator } from "../auth/authenticator.js";
import type { Principal } from "../auth/principal.js";
import type { Core } from "../core.js";
import { ApiError } from "../errors/api-error.js";
import type { ExtraPage } from "../http/app.js";
import type { OpenJson } from "../http/read-body.js";
import { chatCompletion, prepareChat } from "./chat-completion.js";
import { completion } from "./completion.js";
import {
  newRequestId,
  type OpenAiCall,
  type OpenAiParts,
  toApiError,
  wholeAnswer,
} from "./service.js";
import { OpenAiModels, type Aliases } from "./models.js";
import { errorResponse, OpenAiError } from "./openai-error.js";
import { readChatRequest } from "./request/chat-request.js";
import { readCompletionRequest } from "./request/completion-request.js";
import { Fields, isObject } from "./request/fields.js";
import { RecentItems } from "./responses/recent-items.js";
import { response } from "./responses/response.js";

/** Dependencies of the pages. */
export interface OpenAiPagesParts {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly openJson: OpenJson;
  readonly aliases: Aliases;
}

/** Base paths of the API: the usual one, and that of the hosted service. */
export const openAiPrefixes = ["/v1", "/oai/api/v1"] as const;

/** Whether an address belongs to this API, so that its errors have this API's form. */
export function isOpenAiPath(pathname: string): boolean {
  return openAiPrefixes.some((prefix) => pathname.startsWith(`${prefix}/`));
}

type Answer = (fields: Fields, call: OpenAiCall) => Promise<Response>;

/** The routes that OpenAI's clients call. */
export function openAiPages(given: OpenAiPagesParts): ExtraPage[] {
  const models = new OpenAiModels(given.core, given.aliases);
  const parts: OpenAiParts = { core: given.core, models };
  const { logger } = given.core.context;
  const page = (
    method: "GET" | "POST" | "ALL",
    path: string,
    answer: (
      request: Request,
      call: OpenAiCall,
      params: Readonly<Record<string, string>>,
    ) => Promise<Response>,
  ): ExtraPage[] =>
    openAiPrefixes.map((prefix) => ({
      method,
      path: `${prefix}${path}`,
      name: `openai ${method} ${path}`,
      renderError: errorResponse,
      async answer(request, params) {
        const call = {
          caller: authenticate(given.authenticator, request),
          signal: request.signal,
          requestId: newRequestId(),
          streaming: () => {},
        };
        try {
          return await answer(request, call, params);
        } catch (error) {
          // The client has disconnected; this is not an error.
          if (call.signal.aborted) throw new ApiError(499, "the client has gone");
          throw toApiError(error, logger);
        }
      },
    }));
  const post = (path: string, answer: Answer): ExtraPage[] =>
    page("POST", path, async (request, call) => {
      checkMediaType(request);
      const { texts, release } = await given.openJson(request, call.caller.owner, "whole");
      // The response of a stream may have started while its request still waits.
      const streams: Promise<unknown>[] = [];
      const streaming = (work: Promise<unknown>) => streams.push(work);
      try {
        return await answer(new Fields(parseBody(texts)), { ...call, streaming });
      } finally {
        void Promise.allSettled(streams).then(release);
      }
    });
  const recent = new RecentItems();
  return [
    ...page("GET", "/models", async (_, call) =>
      wholeAnswer(call, { object: "list", data: models.list(call.caller) }),
    ),
    ...page("GET", "/models/:model{.+}", async (_, call, params) =>
      wholeAnswer(call, models.describe(params["model"] ?? "", call.caller)),
    ),
    ...post("/chat/completions", (fields, call) =>
      chatCompletion(parts, readChatRequest(fields), call),
    ),
    ...post("/chat/completions/input_tokens", async (fields, call) => {
      const { order, prompt } = await prepareChat(parts, readChatRequest(fields), call);
      const { thinkingState } = await import("@tinker-ts/hub");
      return wholeAnswer(call, {
        object: "response.input_tokens",
        input_tokens: order.prompt.length,
        thinking: thinkingState(prompt.text),
      });
    }),
    ...post("/completions", (fields, call) =>
      completion(parts, readCompletionRequest(fields), call),
    ),
    ...post("/responses", (fields, call) => response(parts, recent, fields, call)),
    ...page("ALL", "/*", async (request) => {
      const { pathname } = new URL(request.url);
      throw new OpenAiError(404, `there is no ${request.method} ${pathname}`, {
        code: "unknown_url",
      });
    }),
  ];
}

function authenticate(authenticator: Authenticator, request: Request): Principal {
  const credential = credentialOf(request.headers);
  const caller = authenticator.identify(credential);
  if (caller) return caller;
  const problem = credential === "" ? "no API key was sent" : "the API key is not known here";
  throw new ApiError(401, `${problem}; send a valid key as a bearer token`);
}

function checkMediaType(request: Request): void {
  const mediaType = request.headers.get("content-type") ?? "";
  if (!/^application\/json\b/i.test(mediaType)) {
    throw new ApiError(415, "the body must be JSON, with content-type: application/json");
  }
}

function parseBody([text]: readonly string[]) {
  let json: unknown;
  try {
    json = JSON.parse(text!);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new OpenAiError(400, `the body is not JSON: ${reason}`);
  }
  if (isObject(json)) return json;
  throw new OpenAiError(400, "the body must be a JSON object");
}
