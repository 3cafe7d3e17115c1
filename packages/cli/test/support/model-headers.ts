import { mkdirSync, openSync, closeSync, ftruncateSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";

/** Shapes by name. */
export type Shapes = Readonly<Record<string, readonly number[]>>;

/**
 * A folder as the hub has it, without its weights: files have their headers and their sizes, and no data, so that
 * gigabytes take no room on a disk.
 */
export function writeModelHeaders(
  folder: string,
  config: object,
  tensors: Shapes,
  { files = 1, template }: { readonly files?: number; readonly template?: string } = {},
): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "config.json"), JSON.stringify(config));
  if (template !== undefined) writeFileSync(path.join(folder, "chat_template.jinja"), template);
  const entries = Object.entries(tensors);
  const perFile = Math.ceil(entries.length / files);
  const weightMap: Record<string, string> = {};
  for (let at = 0; at < files; at++) {
    const number = (value: number) => String(value).padStart(5, "0");
    const name =
      files === 1 ? "model.safetensors" : `model-${number(at + 1)}-of-${number(files)}.safetensors`;
    const own = entries.slice(at * perFile, (at + 1) * perFile);
    for (const [tensor] of own) weightMap[tensor] = name;
    writeHeader(path.join(folder, name), own);
  }
  if (files > 1) {
    const index = JSON.stringify({ metadata: {}, weight_map: weightMap });
    writeFileSync(path.join(folder, "model.safetensors.index.json"), index);
  }
}

function writeHeader(file: string, tensors: readonly (readonly [string, readonly number[]])[]) {
  let end = 0;
  const header: Record<string, object> = {};
  for (const [name, shape] of tensors) {
    const start = end;
    end += 2 * shape.reduce((product, dim) => product * dim, 1);
    header[name] = { dtype: "BF16", shape, data_offsets: [start, end] };
  }
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  const handle = openSync(file, "w");
  writeSync(handle, Buffer.concat([length, json]));
  ftruncateSync(handle, 8 + json.length + end);
  closeSync(handle);
}
