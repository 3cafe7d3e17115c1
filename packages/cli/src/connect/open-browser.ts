import { spawn } from "node:child_process";
import type { CommandContext } from "../command.js";

/** Whether this machine has a screen on which a browser could open. */
export function hasBrowser({ env }: CommandContext["terminal"]): boolean {
  const hasScreen =
    process.platform !== "linux" || Boolean(env["DISPLAY"] || env["WAYLAND_DISPLAY"]);
  return Boolean(env["BROWSER"]) || (hasScreen && !env["SSH_CONNECTION"]);
}

/** Opens an address in a browser. */
export function openBrowser(
  { terminal, output }: Pick<CommandContext, "terminal" | "output">,
  address: string,
): void {
  const [executable, ...args] = browserCommand(terminal.env["BROWSER"]);
  const child = spawn(executable, [...args, address], { stdio: "ignore", detached: true });
  child.once("error", () => output.note("No browser could be opened; follow the address."));
  child.unref();
}

function browserCommand(program: string | undefined): [string, ...string[]] {
  if (program) return [program];
  if (process.platform === "darwin") return ["open"];
  if (process.platform === "win32") return ["cmd", "/c", "start", ""];
  return ["xdg-open"];
}
