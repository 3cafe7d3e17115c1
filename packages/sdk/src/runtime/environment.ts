/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable's value; empty counts as not set. */
export function readVariable(env: Environment, name: string): string | undefined {
  return env[name] || undefined;
}

const yes = new Set(["1", "true", "yes", "on"]);

/** True if a switch is on. */
export function readSwitch(env: Environment, name: string, isOnByDefault: boolean): boolean {
  const text = readVariable(env, name);
  return text === undefined ? isOnByDefault : yes.has(text.toLowerCase());
}
