import axe from "axe-core";
import {
  chromium,
  type Browser,
  type BrowserContext,
  type Download,
  type Page,
} from "playwright-core";
import { expect } from "vitest";

let launched: Promise<Browser> | undefined;

/** Chromium from the registry. */
export function browser(): Promise<Browser> {
  launched ??= (async () => {
    const { default: pack } = await import("@sparticuz/chromium");
    return chromium.launch({
      executablePath: await pack.executablePath(),
      // Not the package's own arguments: they put all tabs into one process and turn rules of the web off.
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
      headless: true,
    });
  })();
  return launched;
}

/** Ends the browser, if there is one. */
export async function closeBrowser(): Promise<void> {
  await (await launched)?.close();
  launched = undefined;
}

/** What a download brings, as text. */
export async function textOf(file: Download): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of await file.createReadStream()) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

/** How a page is looked at. */
export interface View {
  readonly width?: number;
  readonly height?: number;
  readonly theme?: "light" | "dark";
  /** Expected failures of the server, which the browser reports by itself. */
  readonly allowedFailures?: readonly RegExp[];
}

/** The studio in a tab of a fresh browser; failures are collected. */
export class StudioTab implements AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors on the console, broken rules of the content policy, requests to other origins. */
  readonly complaints: string[] = [];

  private constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
  }

  /** Opens an address of the studio. */
  static async open(url: string, view: View = {}): Promise<StudioTab> {
    const { width = 1280, height = 800, theme = "light", allowedFailures = [] } = view;
    const context = await (
      await browser()
    ).newContext({
      viewport: { width, height },
      colorScheme: theme,
      reducedMotion: "reduce",
      locale: "en-US", // that of a bare machine is none that browsers know
    });
    const page = await context.newPage();
    page.setDefaultTimeout(15_000); // shorter than that of a test, so that the error names the missing element
    const tab = new StudioTab(context, page);
    const { origin } = new URL(url);
    page.on("console", (message) => {
      if (message.type() !== "error" && message.type() !== "warning") return;
      const text = `${message.text()} ${message.location().url}`;
      if (!allowedFailures.some((allowed) => allowed.test(text))) tab.complaints.push(text);
    });
    page.on("pageerror", (error) => tab.complaints.push(`uncaught: ${error.message}`));
    page.on("response", (response) => {
      const policy = response.headers()["content-security-policy"] ?? "";
      const isStudio = new URL(response.url()).pathname.startsWith("/studio");
      if (isStudio && !policy.includes("default-src 'none'"))
        tab.complaints.push(`no content policy on ${response.url()}`);
    });
    page.on("request", (request) => {
      const isOwn = request.url().startsWith(origin) || request.url().startsWith("data:");
      if (!isOwn) tab.complaints.push(`request to ${request.url()}`);
    });
    await page.goto(url);
    return tab;
  }

  /** Asserts that nothing went wrong so far. */
  expectClean(): void {
    expect(this.complaints).toEqual([]);
  }

  /** The findings of axe on the current screen: rule and elements. */
  async violations(): Promise<readonly string[]> {
    // Evaluated by the debugger, which the page's policy does not bind.
    const found = await this.page.evaluate(`${axe.source}; axe.run(document)`);
    const { violations } = found as { violations: { id: string; nodes: { html: string }[] }[] };
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`),
    );
  }

  /** Whether the page can be moved sideways. */
  async isTooWide(): Promise<boolean> {
    return this.page.evaluate(
      "document.documentElement.scrollWidth > document.documentElement.clientWidth",
    );
  }

  /** Closes the tab at the end of a block, as `close` does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Closes the tab, and asserts that nothing went wrong in it. */
  async close(): Promise<void> {
    await this.context.close();
    this.expectClean();
  }
}
