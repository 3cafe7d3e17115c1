import { APIStatusError } from "../errors/api-error.js";
import { readSwitch, readVariable } from "../runtime/environment.js";
import { Semaphore } from "../runtime/semaphore.js";
import { sdkVersion } from "../runtime/version.js";
import { connectOpenTelemetry } from "../telemetry/open-telemetry.js";
import { noTelemetry } from "../telemetry/sink.js";
import { openTelemetry } from "../telemetry/telemetry.js";
import { resolveCredential } from "../transport/resolve-credential.js";
import { TokenExchange } from "../transport/token-exchange.js";
import type { ClientConfigResponse } from "../types/service.js";
import { decodeJson } from "../wire/json-codec.js";
import { BillingPause } from "./billing-pause.js";
import type { ConnectionPlan } from "./connection-plan.js";
import { Connection, PollTimeout, type ConnectionSnapshot } from "./connection.js";
import { DialectChoice } from "./dialect.js";
import { DynamicConfig } from "./dynamic-config.js";
import { Farewells } from "./farewells.js";
import { openApi, openTransport } from "./open-transport.js";

/** How a connection is opened. */
export interface OpenOptions {
  /** Replaces the requests that would open the connection. */
  readonly snapshot?: ConnectionSnapshot;
  /** Aborts when the client is closed, opened or not. */
  readonly signal?: AbortSignal;
}

const request = { sdkVersion };
const statusesOfMissingEndpoints = new Set([404, 405, 501]);

/**
 * Opens a connection, in the order that the server expects: flags with the plain credential, then the
 * exchange of the credential if the flags ask for it, then the settings that may change.
 * A snapshot replaces all of that in copies of a client.
 */
export async function openConnection(
  plan: ConnectionPlan,
  { snapshot, signal }: OpenOptions = {},
): Promise<Connection> {
  const { runtime, options } = plan;
  await connectOpenTelemetry(runtime.events);
  const transport = await openTransport(plan);
  const credential = transport.credential ?? plan.credential;
  const provider = resolveCredential(credential, { enforceCommand: false });
  const mainApi = openApi(plan, transport, provider);
  const isTelemetryOn = options.telemetry ?? readSwitch(runtime.env, "TINKER_TELEMETRY", true);
  const telemetry = isTelemetryOn ? openTelemetry({ api: mainApi, runtime }) : noTelemetry;
  const dialect = new DialectChoice(options.dialect ?? "auto", runtime);
  let tokens: TokenExchange | undefined;
  const billing = new BillingPause(runtime);
  const calls = { signal, retries: { host: { runtime, telemetry, billing } } };

  try {
    const config = snapshot?.config ?? (await loadConfig());
    billing.maxPauseMs = config.billingExceptionMaxPauseDurationSec * 1000;
    if (config.pjwtAuthEnabled) {
      tokens = await exchangeTokens(config);
      mainApi.useCredential(tokens.current);
    }
    const dynamicConfig = new DynamicConfig(runtime, fetchDynamicConfig, snapshot?.dynamicConfig);
    if (!snapshot) await dynamicConfig.load();
    if (plan.local && !plan.local.isInProcess && readVariable(runtime.env, "TINKER_TS_STUDIO")) {
      await showStudio(plan, signal);
    }
    return new Connection({
      plan,
      api: mainApi,
      config,
      dynamicConfig,
      dialect,
      billing,
      telemetry,
      tokens,
      baseUrl: transport.baseUrl,
      isInside: transport.isInside,
      nameModel: transport.nameModel ?? ((model) => model),
      send: transport.send,
      closing: new AbortController(),
      farewells: new Farewells(runtime),
      closeTransport: transport.close,
      pollTimeout: new PollTimeout(runtime),
      inflightResponses: new Semaphore(config.inflightResponseBytesSemaphoreSize),
    });
  } catch (error) {
    telemetry.stop();
    tokens?.stop();
    await transport.close();
    throw error;
  }

  async function showStudio(local: ConnectionPlan, given?: AbortSignal): Promise<void> {
    const { findStudio } = await import("./find-studio.js");
    const address = await findStudio(local, given ?? new AbortController().signal);
    if (address !== null) console.error(`studio ${address}`);
  }

  async function loadConfig(): Promise<ClientConfigResponse> {
    try {
      return await mainApi.call("clientConfig", request, calls);
    } catch (error) {
      if (!(error instanceof APIStatusError)) throw error;
      if (!statusesOfMissingEndpoints.has(error.status)) throw error;
      dialect.hint("json", "it has no configuration endpoint");
      return decodeJson("ClientConfigResponse", {});
    }
  }

  async function exchangeTokens(config: ClientConfigResponse): Promise<TokenExchange> {
    const enforceCommand = config.credentialDefaultSource === "credential_cmd";
    const tokenApi = openApi(plan, transport, resolveCredential(credential, { enforceCommand }));
    const fetchToken = async (isBackground: boolean): Promise<string> =>
      (await tokenApi.call("authToken", {}, { isBackground, signal })).jwt;
    const first = snapshot?.token ?? (await tokenApi.call("authToken", {}, calls)).jwt;
    return new TokenExchange(runtime, fetchToken, first);
  }

  function fetchDynamicConfig(isBackground: boolean) {
    const how = isBackground ? { isBackground, signal } : calls;
    return mainApi.call("clientDynamicConfig", request, how);
  }
}
