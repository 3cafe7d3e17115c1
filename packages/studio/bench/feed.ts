import { logLines } from "../test/support/log-lines.js";
import type { StudioServer } from "../test/support/server.js";

/** How many charts the fed run fills. */
export const charts = 20;
/** A run that logs into twenty charts at once. */
export class Feed {
  readonly #server: StudioServer;
  readonly #run: string;
  readonly #keys = Array.from({ length: charts }, (_, index) => `live/metric${index}`);
  #step = 0;

  private constructor(server: StudioServer, run: string) {
    this.#server = server;
    this.#run = run;
  }

  /** Opens a run of this name, with a few points. */
  static async open(server: StudioServer, run: string): Promise<Feed> {
    const feed = new Feed(server, run);
    await logLines(server, run, [{ kind: "open", name: run }, ...feed.#entries(10)]);
    return feed;
  }

  /** The address of its curves, all of them on the screen when the page is 3,000 pixels high. */
  get url(): string {
    return `${this.#server.url}/studio/runs/${this.#run}?find=metric`;
  }

  /** Logs so many points a second into each chart, for so long; four times a second, as a logger does. */
  async flow(perSecond: number, seconds: number, batches = 4): Promise<void> {
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      const start = performance.now();
      await logLines(this.#server, this.#run, this.#entries(perSecond / batches));
      await new Promise((resolve) => {
        setTimeout(resolve, Math.max(0, 1000 / batches - (performance.now() - start)));
      });
    }
  }

  #entries(count: number): object[] {
    return Array.from({ length: count }, () => {
      this.#step++;
      const values = this.#keys.map((key, index) => [key, Math.sin(this.#step / 50 + index)]);
      return { kind: "metrics", step: this.#step, metrics: Object.fromEntries(values) };
    });
  }
}
