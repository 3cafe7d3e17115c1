import { fileURLToPath } from "node:url";

/** The path of a file or folder under `test/fixtures`. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
}

/** The path of a model, an adapter or a merged model under the fixtures of the engine. */
export function modelFixture(name: string): string {
  return fileURLToPath(new URL(`../../../engine/test/fixtures/${name}`, import.meta.url));
}
