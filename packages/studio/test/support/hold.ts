import type { Page } from "playwright-core";

/** A held request of the page. */
export interface Held {
  /** Resolves when the server has answered; of the stream, which has no end, when it is asked for. */
  readonly reached: Promise<void>;
  /** Lets the response arrive; later requests are answered at once. */
  readonly release: () => void;
}

/** Holds the response to a request of the page like a slow network: it has the state at the time of the request. */
export async function hold(page: Page, target: string): Promise<Held> {
  let isFree = false;
  let reach = (): void => {};
  let free = (): void => {};
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const freed = new Promise<void>((resolve) => (free = resolve));
  const isMeant = ({ pathname }: URL): boolean => pathname === `/studio/api/${target}`;
  await page.route(isMeant, async (route) => {
    if (isFree) return route.fallback();
    const response = target === "events" ? undefined : await route.fetch();
    reach();
    await freed;
    // The page may have aborted and retried.
    await (response ? route.fulfill({ response }) : route.fallback()).catch(() => undefined);
  });
  return {
    reached,
    release() {
      isFree = true;
      free();
    },
  };
}
