import type { Style } from "../terminal/style.js";
import type { Terminal } from "../terminal/terminal.js";
import { printable, textWidth, truncate } from "../terminal/text-width.js";

/** Shows how far long work is: a bar on a screen, a line now and then in a log. */
export interface Progress {
  update(done: number, total: number | null, note?: string): void;
  /** Removes the bar; the work's own result says how it went. */
  end(): void;
}

const barWidth = 24;
const redrawMs = 80;
const logMs = 5_000;
const clearLine = "\r\u001B[2K";

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
      const remark = note ? `  ${printable(note)}` : "";
      if (!isScreen) return terminal.err(`${label}${percent}${remark}\n`);
      hasBar = true;
      const bar = share === null ? "" : ` ${drawBar(share, style)}`;
      // A line that wraps could not be removed again.
      const taken = textWidth(label) + (share === null ? 0 : barWidth + 1) + percent.length;
      const room = (terminal.columns ?? 80) - 1 - taken;
      const rest = room > 3 ? truncate(remark, room) : "";
      terminal.err(`${clearLine}${label}${bar}${percent}${rest}`);
    },
    end() {
      if (hasBar) terminal.err(clearLine);
      hasBar = false;
    },
  };
}

function drawBar(share: number, style: Style): string {
  const full = Math.round(share * barWidth);
  return style.green("\u2501".repeat(full)) + style.dim("\u2501".repeat(barWidth - full));
}
