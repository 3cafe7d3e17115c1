import { spawn } from "node:child_process";
import { hostname } from "node:os";
import type { CommandContext } from "../command.js";

/** Opens an address in a browser where there is a screen; elsewhere says how to get there from one. */
export function openBrowser(
  { terminal, output }: Pick<CommandContext, "terminal" | "output">,
  address: string,
  wanted: boolean,
): void {
  const { env } = terminal;
  const isRemote = Boolean(env["SSH_CONNECTION"]);
  const hasScreen =
    process.platform !== "linux" || Boolean(env["DISPLAY"] || env["WAYLAND_DISPLAY"]);
  const program = env["BROWSER"];
  if (wanted && (program || (hasScreen && !isRemote))) {
    const [command, ...args] = browserCommand(program);
    const child = spawn(command, [...args, address], { stdio: "ignore", detached: true });
    child.once("error", () => output.note("No browser could be opened; follow the address."));
    child.unref();
    return;
  }
  const { port, hostname: host } = new URL(address);
  const isLoopback = /^(127\.|localhost$|\[::1\]$)/.test(host);
  if (isLoopback && (isRemote || !hasScreen)) {
    output.note("From a machine with a screen:");
    output.note(`  ssh -L ${port}:127.0.0.1:${port} ${hostname()}, then open the address there`);
  }
}

function browserCommand(program: string | undefined): [string, ...string[]] {
  if (program) return [program];
  if (process.platform === "darwin") return ["open"];
  if (process.platform === "win32") return ["cmd", "/c", "start", ""];
  return ["xdg-open"];
}
