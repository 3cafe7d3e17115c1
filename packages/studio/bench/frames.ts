import type { Page } from "playwright-core";

/** Frames per second and the longest frame while something happens in every frame. */
export interface Frames {
  readonly perSecond: number;
  readonly longestMs: number;
}

/** Runs a piece of code of the page, which may use `frame`, in every frame for a while. */
export async function measureFrames(page: Page, action: string, frames = 120): Promise<Frames> {
  // As text: the debugger evaluates it, which the page's policy does not bind.
  const result = await page.evaluate(`(async () => {
    const times = [];
    await new Promise((resolve) => {
      let frame = 0;
      const next = (now) => {
        times.push(now);
        if (frame >= ${frames}) return resolve();
        { ${action} }
        frame++;
        requestAnimationFrame(next);
      };
      requestAnimationFrame(next);
    });
    const gaps = times.slice(1).map((time, index) => time - times[index]);
    const total = gaps.reduce((sum, gap) => sum + gap, 0);
    return { perSecond: (1000 * gaps.length) / total, longestMs: Math.max(...gaps.slice(2)) };
  })()`);
  return result as Frames;
}
