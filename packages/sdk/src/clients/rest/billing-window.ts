import { ArgumentError } from "../../errors/argument-error.js";
import { Timestamp } from "../../schema/timestamp.js";

const hourMs = 3_600_000;
const longestMs = 14 * 24 * hourMs;

/** Checks the hours that usage is asked for and writes them as the server reads them. */
export function billingWindow(window: {
  readonly startingOn: Date | string;
  readonly endingBefore: Date | string;
}): { readonly startingOn: string; readonly endingBefore: string } {
  const start = readHour("startingOn", window.startingOn);
  const end = readHour("endingBefore", window.endingBefore);
  const lengthMs = end.getTime() - start.getTime();
  if (lengthMs <= 0) throw new ArgumentError("endingBefore", "must be after startingOn");
  if (lengthMs > longestMs) {
    throw new ArgumentError("endingBefore", "must be at most 14 days after startingOn");
  }
  return { startingOn: start.text, endingBefore: end.text };
}

function readHour(field: string, value: Date | string): Timestamp {
  const moment = new Timestamp(withTime(value));
  if (Number.isNaN(moment.getTime())) {
    throw new ArgumentError(field, `${String(value)} is not a date or an RFC 3339 time`);
  }
  if (moment.getTime() % hourMs !== 0) {
    throw new ArgumentError(field, `${moment.text} is not a full hour (UTC)`);
  }
  return moment;
}

/** A bare date is its first hour, and a time without an offset is UTC; both are written out. */
function withTime(value: Date | string): Date | string {
  if (value instanceof Date) return value;
  if (/^\d{4}-\d\d-\d\d$/.test(value)) return `${value}T00:00:00Z`;
  return /[zZ]$|[+-]\d\d:?\d\d$/.test(value) ? value : `${value}Z`;
}
