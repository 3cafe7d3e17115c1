import { readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { readHoverTexts, type HoverText } from "./hover-text.js";

const folder = fileURLToPath(new URL("../dist/types/", import.meta.url));

/** What the interfaces of the API's types say about them, by name. */
export function readDescriptions(): ReadonlyMap<string, HoverText> {
  const files = readdirSync(folder).filter((file) => file.endsWith(".d.ts"));
  const texts = readHoverTexts(files.map((file) => path.join(folder, file)));
  return new Map(texts.map((text) => [text.name, text]));
}
