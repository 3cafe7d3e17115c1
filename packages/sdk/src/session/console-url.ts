import { hostedBaseUrl } from "../transport/base-url.js";
import type { ConnectionPlan } from "./connection-plan.js";

const consoleAddress = "https://tinker.thinkingmachines.ai";

/** The address of something in the console of the hosted service; null for other servers, which have none. */
export function consoleUrl(
  { baseUrl }: ConnectionPlan,
  kind: "sessions" | "training_runs",
  id: string | undefined,
): string | null {
  if (baseUrl.replace(/\/+$/, "") !== hostedBaseUrl) return null;
  return id === undefined ? `${consoleAddress}/${kind}` : `${consoleAddress}/${kind}/${id}`;
}
