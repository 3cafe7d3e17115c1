import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";

/** Most that a browser may have to load for the client, in bytes after gzip. */
export const maxBrowserBytes = 63_600;

/** The client as a browser gets it. */
export interface BrowserBundle {
  /** The scripts, those loaded on demand as well. */
  readonly code: string;
  /** Size of all scripts after gzip, packed together. */
  readonly gzipBytes: number;
  /** Sizes of the scripts after gzip, each packed by itself as servers send them. */
  readonly fileBytes: readonly number[];
  /** The same of those that are loaded at once; the others come when they are needed. */
  readonly startBytes: readonly number[];
  /** Messages of the bundler. */
  readonly warnings: readonly string[];
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
  readonly peerDependencies: Readonly<Record<string, string>>;
};
const optionalPackages = Object.keys(manifest.peerDependencies);

/** Bundles the compiled client with Vite as an application does; what cannot be bundled throws. */
export async function bundleForBrowser(): Promise<BrowserBundle> {
  const entry = "virtual:application";
  const warnings: string[] = [];
  const note = (message: string): void => void warnings.push(message);
  const output = await build({
    configFile: false,
    root,
    logLevel: "warn",
    customLogger: {
      hasWarned: false,
      info: () => {},
      warn: note,
      warnOnce: note,
      error: note,
      clearScreen: () => {},
      hasErrorLogged: () => false,
    },
    plugins: [
      {
        name: "application",
        resolveId: (id) => (id === entry ? id : undefined),
        load: (id) =>
          id === entry
            ? 'import { ServiceClient } from "tinker-ts"; globalThis.service = new ServiceClient();'
            : undefined,
      },
    ],
    // Optional packages are installed in the clone; their size is up to those applications that use them.
    build: { write: false, rollupOptions: { input: entry, external: optionalPackages } },
  });
  if (!("output" in output)) throw new Error("Vite gave no single bundle");
  const files = output.output.filter((file) => file.type === "chunk");
  const atOnce = new Set(files.filter((file) => file.isEntry).map((file) => file.fileName));
  // A set that grows while it is walked is walked to its end.
  for (const name of atOnce) {
    files.find((file) => file.fileName === name)?.imports.forEach((other) => atOnce.add(other));
  }
  const code = files.map((file) => file.code).join("\n");
  return {
    code,
    gzipBytes: gzipSync(code).byteLength,
    fileBytes: files.map((file) => gzipSync(file.code).byteLength),
    startBytes: files
      .filter((file) => atOnce.has(file.fileName))
      .map((file) => gzipSync(file.code).byteLength),
    warnings,
  };
}
