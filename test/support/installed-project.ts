import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { root } from "./source-graph.js";

/** What is read of a package's manifest. */
export interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly repository?: { readonly directory?: string };
  readonly keywords?: readonly string[];
  readonly sideEffects?: unknown;
}

/** The packages that are published, with their folders. */
export const publishedPackages = readdirSync(path.join(root, "packages"))
  .map((folder) => path.join(root, "packages", folder, "package.json"))
  .map((file) => ({ folder: path.dirname(file), manifest: readManifest(file) }))
  .filter(({ manifest }) => !manifest.private);

/**
 * A project outside the clone that has installed the packed packages, and others of the registry. Scripts are
 * on, as they are for users: no dependency may need one that could fail.
 */
export function installProject(others: readonly string[] = []): string {
  const project = mkdtempSync(path.join(tmpdir(), "tinker-ts-packaging-"));
  const packed = execFileSync(
    process.execPath,
    [path.join(root, "scripts/pack.mjs"), path.join(project, "packed")],
    { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
  );
  const tarballs = packed.trim().split("\n");
  writeFileSync(path.join(project, "package.json"), '{"private":true,"type":"module"}');
  const [command, ...prefix] = process.env["npm_execpath"]
    ? [process.execPath, process.env["npm_execpath"]]
    : ["npm"];
  const args = ["install", "--prefer-offline", "--no-save", "--loglevel=error"];
  execFileSync(command, [...prefix, ...args, ...tarballs, ...others], {
    cwd: project,
    stdio: ["ignore", "ignore", "inherit"],
  });
  return project;
}

/** Reads a `package.json`. */
export function readManifest(file: string): Manifest {
  return JSON.parse(readFileSync(file, "utf8")) as Manifest;
}
