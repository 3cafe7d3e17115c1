import { ApiError } from "../errors/api-error.js";
import type { ServerLimits } from "../prices.js";
import type { Clock } from "../time/clock.js";

/** How often the pace is looked at. */
const paceMs = 10_000;

/** Which pace is kept. */
export type BodyPace = Pick<ServerLimits, "minBodyBytesPerSecond" | "bodyTimeoutMs">;

/**
 * The parts of a body as they come. One that trickles in, or takes too long altogether, is given up: it
 * holds memory that others could use.
 */
export async function* pacedBody(
  body: ReadableStream<Uint8Array>,
  pace: BodyPace,
  clock: Clock,
): AsyncGenerator<Uint8Array, void> {
  const reader = body.getReader();
  let arrivedBytes = 0;
  let problem: ApiError | undefined;
  const giveUp = (why: string): void => {
    problem = tooSlow(why);
    reader.cancel(problem).catch(() => {});
  };
  let lookedAtBytes = 0;
  let cancelLook = clock.after(paceMs, function look() {
    const perSecond = (arrivedBytes - lookedAtBytes) / (paceMs / 1000);
    lookedAtBytes = arrivedBytes;
    if (perSecond < pace.minBodyBytesPerSecond) giveUp(`at ${Math.round(perSecond)} bytes/s`);
    else cancelLook = clock.after(paceMs, look);
  });
  const cancelEnd = clock.after(pace.bodyTimeoutMs, () =>
    giveUp(`and took more than ${pace.bodyTimeoutMs / 1000} s`),
  );
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (problem) throw problem;
      if (done) return;
      arrivedBytes += value.length;
      yield value;
    }
  } finally {
    cancelLook();
    cancelEnd();
    reader.releaseLock();
  }
}

/** A small body, at once and without a stream; all of it has to be there when the pace would be looked at. */
export async function smallBody(request: Request, clock: Clock): Promise<Uint8Array> {
  let cancelEnd = (): void => {};
  const late = new Promise<never>((_, reject) => {
    cancelEnd = clock.after(paceMs, () => reject(tooSlow(`and took more than ${paceMs / 1000} s`)));
  });
  try {
    return new Uint8Array(await Promise.race([request.arrayBuffer(), late]));
  } finally {
    cancelEnd();
  }
}

function tooSlow(why: string): ApiError {
  return new ApiError(408, `the body came too slowly, ${why}; send it again, in smaller parts`, {
    // The rest of the body is not read, so the connection cannot be used again.
    headers: { connection: "close" },
  });
}
