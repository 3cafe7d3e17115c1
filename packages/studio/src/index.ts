import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** One file of the page. */
export interface StudioAsset {
  /** The file as it is. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The same, packed by the build. */
  readonly packed: { readonly br: Uint8Array<ArrayBuffer>; readonly gzip: Uint8Array<ArrayBuffer> };
  /** The `content-type`. */
  readonly mediaType: string;
  /** SHA-256 of the bytes in base64url, for `etag`. */
  readonly digest: string;
  /** True when the name changes with the content, so that a browser may cache it for ever. */
  readonly isImmutable: boolean;
}

const mediaTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * The files of the page by their path below `/studio/`; the page itself is `index.html`, served for every address
 * that is not a file. Throws if the page was not built, and names the command that builds it.
 */
export async function loadStudioAssets(): Promise<ReadonlyMap<string, StudioAsset>> {
  const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), "assets");
  const names = await readdir(folder, { recursive: true, encoding: "utf8" }).catch(() => []);
  const files = names.filter((name) => path.extname(name) in mediaTypes);
  if (!files.includes("index.html")) {
    throw new Error("the studio's page is not built; run `npm run build` in the clone");
  }
  const read = async (name: string): Promise<Uint8Array<ArrayBuffer>> =>
    new Uint8Array(await readFile(path.join(folder, name)));
  const entries = await Promise.all(
    files.map(async (file): Promise<[string, StudioAsset]> => {
      const [bytes, br, gzip] = await Promise.all([
        read(file),
        read(`${file}.br`),
        read(`${file}.gz`),
      ]);
      const name = file.replaceAll("\\", "/");
      return [
        name,
        {
          bytes,
          packed: { br, gzip },
          mediaType: mediaTypes[path.extname(file)]!,
          digest: createHash("sha256").update(bytes).digest("base64url"),
          isImmutable: name.startsWith("files/"),
        },
      ];
    }),
  );
  return new Map(entries);
}
