import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

/** What the page holds, as its browser counts it after a collection. */
export interface Held {
  readonly heapBytes: number;
  /** Elements, also those that are in no document any more. */
  readonly nodes: number;
  /** Who listens to what: those of questions that are long answered would pile up unseen. */
  readonly listeners: number;
  /** What its charts say of themselves, so that a page without curves is not taken for a small one. */
  readonly charts: readonly (string | null)[];
}

/**
 * Chromium as people start it, with one page. A driver makes the page's process keep every answer of the server, so
 * that its memory says nothing; here one is attached only while `held` asks.
 */
export class PlainBrowser implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #profile: string;
  readonly #endpoint: string;

  private constructor(child: ChildProcess, profile: string, endpoint: string) {
    this.#child = child;
    this.#profile = profile;
    this.#endpoint = endpoint;
  }

  /** Opens an address in a window of this size. */
  static async open(url: string, size: readonly [number, number]): Promise<PlainBrowser> {
    const { default: pack } = await import("@sparticuz/chromium");
    const profile = mkdtempSync(path.join(tmpdir(), "tinker-ts-browser-"));
    const args = [
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--disable-gpu",
      "--headless",
      "--accept-lang=en-US", // that of a bare machine is none that browsers know
      `--user-data-dir=${profile}`,
      `--window-size=${size.join(",")}`,
      "--remote-debugging-port=0",
      url,
    ];
    const child = spawn(await pack.executablePath(), args, { stdio: ["ignore", "ignore", "pipe"] });
    const endpoint = await new Promise<string>((resolve, reject) => {
      let said = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        said = (said + text).slice(-10_000);
        const found = /DevTools listening on (\S+)\n/.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      });
      child.once("exit", () => reject(new Error(`the browser did not start: ${said}`)));
    });
    return new PlainBrowser(child, profile, endpoint);
  }

  /** What the page holds. */
  async held(): Promise<Held> {
    const driver = await chromium.connectOverCDP(this.#endpoint);
    try {
      const [context] = driver.contexts();
      const page = context!.pages()[0]!;
      const session = await context!.newCDPSession(page);
      await session.send("Performance.enable");
      await session.send("HeapProfiler.collectGarbage");
      const { metrics } = await session.send("Performance.getMetrics");
      const figure = (wanted: string): number =>
        metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN;
      const labels = await page.locator(".chart").all();
      return {
        heapBytes: figure("JSHeapUsedSize"),
        nodes: figure("Nodes"),
        listeners: figure("JSEventListeners"),
        charts: await Promise.all(labels.map((chart) => chart.getAttribute("aria-label"))),
      };
    } finally {
      await driver.close(); // lets go of the browser, which stays
    }
  }

  /**
   * What the page's process takes, in megabytes, as the browser's own task manager counts it: memory of its own,
   * without the program's code, which is a file. Linux says it.
   */
  ownMegabytes(): number {
    const sizes = childrenOf(this.#child.pid!)
      .filter((id) => readFileSync(`/proc/${id}/cmdline`, "utf8").includes("--type=renderer"))
      .map((id) => {
        const status = readFileSync(`/proc/${id}/status`, "utf8");
        const parts = [...status.matchAll(/^(?:RssAnon|VmSwap):\s+(\d+) kB/gm)];
        return parts.reduce((sum, [, kilobytes]) => sum + (Number(kilobytes) * 1024) / 1e6, 0);
      });
    return Math.max(...sizes);
  }

  /** Ends the browser. */
  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await ended;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Ids of all processes below one; pages are started by a helper of the browser. */
function childrenOf(id: number): readonly number[] {
  const direct = readFileSync(`/proc/${id}/task/${id}/children`, "utf8")
    .split(" ")
    .filter(Boolean)
    .map(Number);
  return direct.flatMap((child) => [child, ...childrenOf(child)]);
}
