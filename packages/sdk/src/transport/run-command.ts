/** Runs a command of the shell and returns what it prints; exit status and stderr do not matter. */
export async function runCommand(command: string): Promise<string> {
  const { exec } = await import("node:child_process");
  return new Promise<string>((resolve) => {
    exec(command, { encoding: "utf8", windowsHide: true }, (_, stdout) => resolve(stdout));
  });
}
