import { ApiError } from "../errors/api-error.js";
import { checkFetchSite, studioHeaders } from "./guard.js";

/** One file of the page, as its package has it. */
interface Asset {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly packed: { readonly br: Uint8Array<ArrayBuffer>; readonly gzip: Uint8Array<ArrayBuffer> };
  readonly mediaType: string;
  readonly digest: string;
  readonly isImmutable: boolean;
}

/** The files of the page by their path below `/studio/`. */
export type StudioAssets = ReadonlyMap<string, Asset>;

// Not a literal: the server works without the package, and its types are not needed.
const packageName = "@tinker-ts/studio";

const howToGetIt = `the studio's page is not installed here: npm install ${packageName}, then start the server again; it records meanwhile`;

/** The files of the page, from its package; read once. */
export class StudioPage {
  #assets: Promise<StudioAssets> | undefined;

  /** The files; rejects with what to do when they are not there. */
  load(): Promise<StudioAssets> {
    const loading = (this.#assets ??= loadAssets());
    loading.catch(() => (this.#assets = undefined));
    return loading;
  }

  /** A file, or for any other address the page itself. */
  async answer(request: Request, isEmbed = false): Promise<Response> {
    const { pathname } = new URL(request.url);
    const name = pathname.replace(/^\/studio\/?/, "");
    const isFile = /\.\w+$/.test(name) && !name.startsWith("runs/");
    checkFetchSite(request, !isFile, isEmbed);
    let assets: StudioAssets;
    try {
      assets = await this.load();
    } catch (error) {
      const text = error instanceof ApiError ? error.message : howToGetIt;
      const headers = { ...studioHeaders, "content-type": "text/plain; charset=utf-8" };
      return new Response(`${text}\n`, { status: 503, headers });
    }
    const asset = assets.get(isFile ? name : "index.html");
    if (!asset) throw new ApiError(404, `the studio has no file ${name}`);
    return assetResponse(request, asset);
  }
}

function assetResponse(request: Request, asset: Asset): Response {
  const accepted = request.headers.get("accept-encoding") ?? "";
  const encoding = /\bbr\b/.test(accepted) ? "br" : /\bgzip\b/.test(accepted) ? "gzip" : null;
  const headers = {
    ...studioHeaders,
    "content-type": asset.mediaType,
    "cache-control": asset.isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
    etag: `"${asset.digest}"`,
    vary: "accept-encoding",
    ...(encoding ? { "content-encoding": encoding } : {}),
  };
  if (request.headers.get("if-none-match") === `"${asset.digest}"`) {
    return new Response(null, { status: 304, headers });
  }
  const body = encoding ? asset.packed[encoding] : asset.bytes;
  return new Response(body, { headers: { ...headers, "content-length": String(body.length) } });
}

async function loadAssets(): Promise<StudioAssets> {
  let studio: { loadStudioAssets: () => Promise<StudioAssets> };
  try {
    studio = (await import(packageName)) as typeof studio;
  } catch {
    throw new ApiError(503, howToGetIt);
  }
  try {
    return await studio.loadStudioAssets();
  } catch (error) {
    throw new ApiError(503, error instanceof Error ? error.message : String(error));
  }
}
