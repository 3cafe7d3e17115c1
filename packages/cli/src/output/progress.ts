import type { Style } from "../terminal/style.js";
import type { Terminal } from "../terminal/terminal.js";

/** Shows how far long work is: a bar on a screen, a line now and then in a log. */
export interface Progress {
  update(done: number, total: number | null, note?: string): void;
  /** Removes the bar; the work's own result says how it went. */
  end(): void;
}

const barWidth = 24;
const redrawMs = 80;
const logMs = 5_000;

/** Nothing at all. */
export const noProgress: Progress = { update: () => {}, end: () => {} };

/** The progress of some work on standard error. */
export function showProgress(label: string, terminal: Terminal, style: Style): Progress {
  const isScreen = terminal.isInteractive.err;
  const everyMs = isScreen ? redrawMs : logMs;
  // A screen shows the bar at once; a log is spared work that is over before anybody wonders.
  let shownAt = isScreen ? Number.NEGATIVE_INFINITY : performance.now();
  let hasBar = false;
  return {
    update(done, total, note = "") {
      const now = performance.now();
      if (now - shownAt < everyMs) return;
      shownAt = now;
      const share = total ? Math.min(1, done / total) : null;
      const percent = share === null ? "" : ` ${String(Math.floor(share * 100)).padStart(3)} %`;
      const text = `${label}${percent}${note ? `  ${note}` : ""}`;
      if (!isScreen) return terminal.err(`${text}\n`);
      hasBar = true;
      const bar = share === null ? "" : ` ${drawBar(share, style)}`;
      const cut = `${label}${bar}${percent}${note ? `  ${note}` : ""}`;
      terminal.err(`\r\u001B[2K${cut}`);
    },
    end() {
      if (hasBar) terminal.err("\r\u001B[2K");
      hasBar = false;
    },
  };
}

function drawBar(share: number, style: Style): string {
  const full = Math.round(share * barWidth);
  return style.green("\u2501".repeat(full)) + style.dim("\u2501".repeat(barWidth - full));
}
