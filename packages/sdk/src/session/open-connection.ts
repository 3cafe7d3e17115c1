import { APIStatusError } from "../errors/api-error.js";
import { readSwitch } from "../runtime/environment.js";
import { sdkVersion } from "../runtime/version.js";
import { connectOpenTelemetry } from "../telemetry/open-telemetry.js";
import { noTelemetry } from "../telemetry/sink.js";
import { openTelemetry } from "../telemetry/telemetry.js";
import { resolveCredential, type CredentialProvider } from "../transport/resolve-credential.js";
import { TokenExchange } from "../transport/token-exchange.js";
import type { ClientConfigResponse } from "../types/service.js";
import { decodeJson } from "../wire/json-codec.js";
import { BillingPause } from "./billing-pause.js";
import type { ConnectionPlan } from "./connection-plan.js";
import { Connection, type ConnectionSnapshot } from "./connection.js";
import { DialectChoice } from "./dialect.js";
import { DynamicConfig } from "./dynamic-config.js";
import { executeWithRetries } from "./execute-with-retries.js";
import { openApi } from "./open-api.js";
import { openTransport } from "./open-transport.js";

/** How a connection is opened. */
export interface OpenOptions {
  /** Stands for what the server would be asked. */
  readonly snapshot?: ConnectionSnapshot;
  /** Aborts when the client is closed, opened or not. */
  readonly signal?: AbortSignal;
}

const request = { sdkVersion };
const statusesOfMissingEndpoints = new Set([404, 405, 501]);

/**
 * Opens a connection, in the order that the server expects: flags with the plain credential, then the
 * exchange of the credential if the flags ask for it, then the settings that may change.
 * A snapshot stands for all of that in copies.
 */
export async function openConnection(
  plan: ConnectionPlan,
  { snapshot, signal }: OpenOptions = {},
): Promise<Connection> {
  const { runtime, options, credential } = plan;
  let provider = resolveCredential(credential, { enforceCommand: false });
  await connectOpenTelemetry(runtime.events);
  const transport = await openTransport(plan);
  const mainApi = openApi(plan, transport, (ended) => provider(ended));
  const isTelemetryOn = options.telemetry ?? readSwitch(runtime.env, "TINKER_TELEMETRY", true);
  const telemetry = isTelemetryOn ? openTelemetry({ api: mainApi, runtime }) : noTelemetry;
  const dialect = new DialectChoice(options.dialect ?? "auto", runtime);
  let tokens: TokenExchange | undefined;
  let maxPauseMs = 3_600_000;
  const billing = new BillingPause(runtime, () => maxPauseMs);
  const retrying = <T>(endpoint: string, call: () => Promise<T>): Promise<T> =>
    executeWithRetries(call, { runtime, telemetry, billing }, endpoint, { signal });

  try {
    const config = snapshot?.config ?? (await loadConfig());
    maxPauseMs = config.billingExceptionMaxPauseDurationSec * 1000;
    if (config.pjwtAuthEnabled) provider = await exchangeTokens(config);
    const dynamicConfig = new DynamicConfig(runtime, fetchDynamicConfig, snapshot?.dynamicConfig);
    if (!snapshot) await dynamicConfig.load();
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
      send: transport.send,
      closeTransport: transport.close,
    });
  } catch (error) {
    telemetry.stop();
    tokens?.stop();
    await transport.close();
    throw error;
  }

  async function loadConfig(): Promise<ClientConfigResponse> {
    try {
      return await retrying("clientConfig", () =>
        mainApi.call("clientConfig", request, { signal }),
      );
    } catch (error) {
      if (!(error instanceof APIStatusError)) throw error;
      if (!statusesOfMissingEndpoints.has(error.status)) throw error;
      dialect.suppose("json", "it has no configuration endpoint");
      return decodeJson("ClientConfigResponse", {});
    }
  }

  async function exchangeTokens(config: ClientConfigResponse): Promise<CredentialProvider> {
    const enforceCommand = config.credentialDefaultSource === "credential_cmd";
    const tokenApi = openApi(plan, transport, resolveCredential(credential, { enforceCommand }));
    const fetchToken = async (isBackground: boolean): Promise<string> =>
      (await tokenApi.call("authToken", {}, { isBackground, signal })).jwt;
    const exchange = new TokenExchange(runtime, fetchToken, snapshot?.token);
    tokens = exchange;
    if (exchange.token === undefined) await retrying("authToken", () => exchange.start());
    return () => exchange.current();
  }

  function fetchDynamicConfig(isBackground: boolean) {
    const fetch = () => mainApi.call("clientDynamicConfig", request, { isBackground, signal });
    return isBackground ? fetch() : retrying("clientDynamicConfig", fetch);
  }
}
