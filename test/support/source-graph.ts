import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the repository. */
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");

/** One import or re-export of a source file. */
export interface Import {
  readonly specifier: string;
  /** Erased by the compiler, so it cannot close a cycle at run time. */
  readonly isTypeOnly: boolean;
  /** `import(...)`: loaded on demand. */
  readonly isDynamic: boolean;
}

/** A source file of a package, by its path from the root. */
export interface SourceFile {
  readonly file: string;
  readonly packageFolder: string;
  readonly imports: readonly Import[];
}

const staticPattern = /^\s*(?:import|export)\s+(type\s+)?(?:[^"';]*?\sfrom\s+)?"([^"]+)"/gm;
const dynamicPattern = /\bimport\(\s*"([^"]+)"\s*\)/g;

/** Every source file of every package in a folder of the root, without tests. */
export function sourceFiles(parent = "packages"): SourceFile[] {
  return listFiles(parent)
    .filter((file) => /^[^/]+\/[^/]+\/src\/.*\.tsx?$/.test(file) && !file.endsWith(".test.ts"))
    .map((file) => ({
      file,
      packageFolder: file.split("/")[1]!,
      imports: importsOf(readFileSync(path.join(root, file), "utf8")),
    }));
}

/** The file a relative specifier points to. */
export function resolveRelative(from: string, specifier: string): string {
  const target = path.posix.join(path.posix.dirname(from), specifier);
  const source = target.replace(/\.js$/, ".ts");
  return existsSync(path.join(root, `${source}x`)) ? `${source}x` : source;
}

function importsOf(source: string): Import[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  return [
    ...[...code.matchAll(staticPattern)].map(([, typeOnly, specifier]) => ({
      specifier: specifier!,
      isTypeOnly: typeOnly !== undefined,
      isDynamic: false,
    })),
    ...[...code.matchAll(dynamicPattern)].map(([, specifier]) => ({
      specifier: specifier!,
      isTypeOnly: false,
      isDynamic: true,
    })),
  ];
}

function listFiles(folder: string): string[] {
  return readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const file = `${folder}/${entry.name}`;
    if (entry.isFile()) return [file];
    return entry.name === "node_modules" || entry.name === "dist" ? [] : listFiles(file);
  });
}
