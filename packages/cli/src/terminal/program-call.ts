/** The command that starts this program where the user is: through npx where npm started it, else by its name. */
export function programCall(env: Readonly<Record<string, string | undefined>>): string {
  return env["npm_command"] === "exec" ? "npx tinker-ts" : "tinker-ts";
}
