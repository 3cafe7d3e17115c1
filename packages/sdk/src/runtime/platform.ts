import type { Environment } from "./environment.js";

/** What this runs on. */
export interface Platform {
  readonly env: Environment;
  /** As Node names it: `linux`, `darwin`, ...; `browser` where there is no process. */
  readonly os: string;
  readonly arch: string;
  readonly runtime: "node" | "bun" | "deno" | "browser";
  readonly runtimeVersion: string;
}

/** Looks around once; a browser and most edge runtimes have no `process`. */
export const platform: Platform = lookAround();

function lookAround(): Platform {
  const { process: node } = globalThis as { process?: NodeJS.Process };
  if (typeof node?.versions?.node !== "string") {
    return { env: {}, os: "browser", arch: "unknown", runtime: "browser", runtimeVersion: "" };
  }
  const { bun, deno } = node.versions as { readonly bun?: string; readonly deno?: string };
  return {
    env: node.env,
    os: node.platform,
    arch: node.arch,
    runtime: bun === undefined ? (deno === undefined ? "node" : "deno") : "bun",
    runtimeVersion: bun ?? deno ?? node.version,
  };
}
