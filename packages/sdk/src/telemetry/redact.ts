const secretName = /key|token|secret|authorization|cookie|password|credential/i;
const secretText = /\btml-[\w-]+|\beyJ[\w-]+\.[\w.-]+/g;
const maxTextLength = 10_000;
const maxDepth = 20;
const hidden = "[redacted]";

/** A copy without credentials, as plain JSON of bounded size. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (value === null || typeof value === "boolean") return value;
  if (value === undefined) return null;
  if (typeof value !== "object") return typeof value === "bigint" ? String(value) : typeof value;
  if (depth > maxDepth) return "[nested too deeply]";
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      secretName.test(name) ? hidden : redact(item, depth + 1),
    ]),
  );
}

/** Text without credentials, cut to a bounded length. */
export function redactText(text: string): string {
  const safe = text.replace(secretText, hidden);
  return safe.length > maxTextLength ? `${safe.slice(0, maxTextLength)}...` : safe;
}
