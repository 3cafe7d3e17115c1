/** Rows as CSV; the header holds the fields of the first row and those that later rows add. */
export function csvText(
  rows: readonly Readonly<Record<string, unknown>>[],
  fields: readonly string[] = fieldsOf(rows),
): string {
  const lines = [fields, ...rows.map((row) => fields.map((field) => cellText(row[field])))];
  return lines.map((line) => `${line.map(quote).join(",")}\r\n`).join("");
}

/** The fields of all rows, in the order in which they first appear. */
export function fieldsOf(rows: readonly Readonly<Record<string, unknown>>[]): string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row)))];
}

/** A value as one cell; nothing for null. */
export function cellText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
