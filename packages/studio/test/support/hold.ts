import type { Page } from "playwright-core";

/** A question of the page whose answer is on its way. */
export interface Held {
  /** Resolves when the server has answered; of the stream, which has no end, when it is asked for. */
  readonly reached: Promise<void>;
  /** Lets the answer arrive; later questions are answered at once. */
  readonly release: () => void;
}

/** Holds the answer to a question of the page as a slow network would: it says what was true when it was asked. */
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
    // The page may have given up and asked anew.
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
