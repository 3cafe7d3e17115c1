import { readVariable, type Environment } from "../runtime/environment.js";
import { platform } from "../runtime/platform.js";
import { packageVersion, sdkVersion } from "../runtime/version.js";
import { acceptedEncodings } from "./decompression.js";
import type { Headers } from "./message.js";

const osNames: Readonly<Record<string, string>> = {
  darwin: "MacOS",
  linux: "Linux",
  win32: "Windows",
  freebsd: "FreeBSD",
  openbsd: "OpenBSD",
  android: "Android",
};

const archNames: Readonly<Record<string, string>> = {
  ia32: "x32",
  x64: "x64",
  arm: "arm",
  arm64: "arm64",
};

/** Headers that every request carries: what is asking, and the way through an access proxy. */
export function defaultHeaders(env: Environment, extra: Headers = {}): Headers {
  const { os, arch, runtime, runtimeVersion } = platform;
  return {
    accept: "application/json",
    "accept-encoding": acceptedEncodings,
    "user-agent": `tinker-ts/${packageVersion}`,
    "x-stainless-package-version": sdkVersion,
    "x-stainless-os": osNames[os] ?? `Other:${os}`,
    "x-stainless-arch": archNames[arch] ?? `other:${arch}`,
    "x-stainless-runtime": runtime,
    "x-stainless-runtime-version": runtimeVersion,
    "x-stainless-async": `async:${runtime}`,
    ...accessHeaders(env),
    ...lowerCaseKeys(extra),
  };
}

/** The headers that an access proxy wants, from the environment. */
export function accessHeaders(env: Environment): Headers {
  const clientId = readVariable(env, "CLOUDFLARE_ACCESS_CLIENT_ID");
  const clientSecret = readVariable(env, "CLOUDFLARE_ACCESS_CLIENT_SECRET");
  return {
    ...(clientId ? { "cf-access-client-id": clientId } : {}),
    ...(clientSecret ? { "cf-access-client-secret": clientSecret } : {}),
  };
}

function lowerCaseKeys(headers: Headers): Headers {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}
