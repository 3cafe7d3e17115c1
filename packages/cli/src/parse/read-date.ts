import { CliError } from "../errors/cli-error.js";

const pattern = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/i;

/** Reads an ISO 8601 date or date and time; without an offset it is UTC. */
export function readDate(option: string, text: string): Date {
  const match = pattern.exec(text);
  const iso = text.length === 10 ? `${text}T00:00:00Z` : match?.[1] ? text : `${text}Z`;
  const date = new Date(iso.replace(" ", "T"));
  // Days that do not exist, such as 30 February, roll over to the next month.
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  const isRealDay = !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text.slice(0, 10));
  if (match && isRealDay && !Number.isNaN(date.getTime())) return date;
  throw new CliError(
    `Invalid date for ${option}: ${JSON.stringify(text)}`,
    "Write YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ; times without an offset are UTC.",
  );
}
