import { fileURLToPath } from "node:url";

/** The path of a file or folder under `test/fixtures`. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
}
