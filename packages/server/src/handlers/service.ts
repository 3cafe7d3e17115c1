import type { Authenticator } from "../auth/authenticator.js";
import type { Core } from "../core.js";
import type { TokenizerFiles } from "../engine-host/base-models.js";
import { badRequest } from "../errors/api-error.js";
import { bytesResponse } from "../http/answers.js";
import type { HandlersOf } from "../http/call.js";
import { idempotencyKeyOf } from "../journal/journal.js";

/** The configuration of clients; missing fields have the client's defaults. */
const clientFlags = {
  pjwtAuthEnabled: true,
  credentialDefaultSource: "api_key",
  parallelFwdbwdChunks: true,
  // On one machine compression costs more than it saves.
  protoCompressFwdbwd: false,
  usePyqwestTransport: false,
  createModelViaLoadWeights: true,
};

/** Health, configuration, identity, sessions, telemetry. */
export function serviceHandlers(
  { context, bases, sessions }: Core,
  authenticator: Authenticator,
  usesBatchPolling: boolean,
): HandlersOf<
  | "healthz"
  | "getServerCapabilities"
  | "clientConfig"
  | "clientDynamicConfig"
  | "authToken"
  | "createSession"
  | "sessionHeartbeat"
  | "finishSession"
  | "getApiKey"
  | "telemetry"
  | "getTokenizer"
> {
  return {
    healthz: () => ({ status: "ok" }),

    async getServerCapabilities() {
      const supportedModels = await Promise.all(
        bases.names.map(async (modelName) => {
          const facts = await bases.peek(modelName).catch(() => undefined);
          return { modelName, maxContextLength: facts?.contextLength ?? null };
        }),
      );
      // Lets clients detect extensions of the API.
      return { supportedModels, unknownFields: { sampling_extensions: true } };
    },

    clientConfig: () => ({
      ...clientFlags,
      unknownFields: {
        sample_join_sampling_session: true,
        sample_use_retrieve_futures: usesBatchPolling,
      },
    }),

    clientDynamicConfig: () => ({ unknownFields: { sample_cancel_enabled: true } }),

    authToken: ({ caller }) => ({ jwt: authenticator.issueToken(caller) }),

    async createSession({ caller, body, headers }) {
      const sessionId = await sessions.create(caller, body, idempotencyKeyOf(headers));
      return { sessionId };
    },

    sessionHeartbeat({ caller, body }) {
      sessions.touch(body.sessionId, caller);
      return {};
    },

    finishSession: ({ caller, params, body }) =>
      sessions.finish(params["sessionId"] ?? "", caller, body),

    getApiKey: ({ caller: { owner, email, keyId } }) => ({
      // Keys have no ids here; this one is the same at every start.
      keyId: Number.parseInt(keyId.slice(0, 8), 16) || 0,
      name: owner,
      note: null,
      details: { orgDetails: { name: null }, userDetails: { email } },
    }),

    telemetry({ body }) {
      for (const event of body.events) {
        context.metrics.telemetryEvents.add(1, { event: event.event });
        if (event.event === "UNHANDLED_EXCEPTION") {
          const { errorType: type, errorMessage: message } = event;
          context.logger.info("a client reports an exception", {
            session: body.sessionId,
            type,
            message: message.slice(0, 200),
          });
        }
      }
      return { status: "accepted" };
    },

    async getTokenizer({ query }) {
      const model = query["model"];
      if (!model) throw badRequest("model", "name the base model: ?model=NAME");
      return tokenizerResponse(model, await bases.tokenizer(model));
    },
  };
}

/** Joins the files without parsing: parsing ten megabytes of JSON would block the event loop. */
function tokenizerResponse(model: string, files: TokenizerFiles): Response {
  const fields = [
    `"model":${JSON.stringify(model)}`,
    `"tokenizer":${files.tokenizer}`,
    ...(files.tokenizerConfig === null ? [] : [`"tokenizer_config":${files.tokenizerConfig}`]),
    ...(files.chatTemplate === null
      ? []
      : [`"chat_template":${JSON.stringify(files.chatTemplate)}`]),
  ];
  return bytesResponse(Buffer.from(`{${fields.join(",")}}`), "application/json");
}
