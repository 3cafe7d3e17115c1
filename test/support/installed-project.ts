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
  execFileSync(process.execPath, [path.join(root, "scripts/carry-runtime.mjs")]);
  const tarballs = publishedPackages.map(({ folder }) => {
    const packed = JSON.parse(
      npm(["pack", "--json", "--pack-destination", project], folder),
    ) as readonly { filename: string }[];
    return path.join(project, packed[0]!.filename);
  });
  writeFileSync(path.join(project, "package.json"), '{"private":true,"type":"module"}');
  npm(["install", "--prefer-offline", "--no-save", ...tarballs, ...others], project);
  return project;
}

/** Reads a `package.json`. */
export function readManifest(file: string): Manifest {
  return JSON.parse(readFileSync(file, "utf8")) as Manifest;
}

function npm(args: readonly string[], cwd: string): string {
  const [command, ...prefix] = process.env["npm_execpath"]
    ? [process.execPath, process.env["npm_execpath"]]
    : ["npm"];
  return execFileSync(command, [...prefix, ...args, "--loglevel=error"], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
}
