import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { credentialOf, type Authenticator } from "../auth/authenticator.js";
import { signedPath, type SignedLinks } from "../auth/signed-links.js";
import type { Core } from "../core.js";
import { ApiError, notFound } from "../errors/api-error.js";
import type { ExtraPage } from "../http/app.js";
import { importPage } from "./import-page.js";
import { tarStream, type TarEntry } from "../rest/tar.js";
import { inTinkerLayout } from "../rest/tinker-layout.js";
import { traceStream } from "../rest/trace.js";

/** Uploads of checkpoints, downloads by signed link, and the metrics. */
export function extraPages(
  core: Core,
  links: SignedLinks,
  authenticator: Authenticator,
): ExtraPage[] {
  const signed = (kind: string, answer: (subject: string) => Promise<Response>): ExtraPage => ({
    path: `${signedPath}/${kind}`,
    answer(request) {
      const target = links.verify(kind, new URL(request.url).searchParams);
      if (!target)
        throw new ApiError(403, "the link has expired or is not valid; ask for a new one");
      return answer(target.subject);
    },
  });

  return [
    importPage(core, authenticator),
    signed("archive", (folder) => archiveResponse(core, folder)),
    signed("archive-tinker", (folder) => archiveResponse(core, folder, tinkerFiles)),
    {
      method: "DELETE",
      path: "/api/v1/training_runs/:run/checkpoints/:name",
      answer(_request, { name = "" }) {
        const ways = `weights/${name} or sampler_weights/${name}`;
        throw new ApiError(400, `checkpoint: say which kind, ${ways}, in place of ${name}`);
      },
    },
    signed("trace", async (sessionId) =>
      streamResponse(Readable.from(traceStream(core.context.store, sessionId)), "application/json"),
    ),
    {
      path: "/metrics",
      answer(request) {
        if (!authenticator.identify(credentialOf(request.headers))) {
          throw new ApiError(401, "the metrics need an API key as a bearer token or in X-API-Key");
        }
        const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
        return new Response(core.context.metrics.render(), { headers });
      },
    },
  ];
}

/** The files of an archive in the Tinker service's layout; the manifest is left out because its digests would not match. */
const tinkerFiles: Readonly<Record<string, (entry: TarEntry) => Promise<TarEntry>>> = {
  "adapter_config.json": async (entry) => entry,
  "adapter_model.safetensors": inTinkerLayout,
};

async function archiveResponse(
  { context, checkpoints }: Core,
  folder: string,
  only?: typeof tinkerFiles,
): Promise<Response> {
  const checkpoint = context.store.checkpoints.byFolder(folder);
  if (!checkpoint) throw notFound("the checkpoint");
  await checkpoints.verify(checkpoint);
  const files = await checkpoints.folders.files(folder);
  const entries: TarEntry[] = [];
  for (const name of files) {
    const entry = { name, path: path.join(checkpoints.folders.pathOf(folder), name) };
    if (!only) entries.push(entry);
    else if (only[name]) entries.push(await only[name](entry));
  }
  // Weights hardly compress; the fastest level keeps the download fast.
  const zipped = createGzip({ level: 1 });
  pipeline(Readable.from(tarStream(entries)), zipped).catch((error: unknown) => {
    // The client sees an aborted stream; the log has the reason.
    context.logger.warn("an archive could not be sent whole", { error: String(error) });
  });
  return streamResponse(zipped, "application/gzip");
}

function streamResponse(content: Readable, mediaType: string): Response {
  const body = Readable.toWeb(content) as ReadableStream<Uint8Array>;
  return new Response(body, { headers: { "content-type": mediaType } });
}
