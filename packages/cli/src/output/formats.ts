const units = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];

/** A size for people: base 1024, one decimal. */
export function formatSize(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined || bytes < 0) return "N/A";
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return unit === 0 ? `${size} B` : `${size.toFixed(1)} ${units[unit]}`;
}

/** `Yes` or `No`. */
export function formatBoolean(value: boolean): string {
  return value ? "Yes" : "No";
}

/** A date for JSON, in UTC, with microseconds where there are any. */
export function formatDate(date: Date): string {
  const text = date.toJSON();
  const fraction = /\.(\d+)/.exec(text)?.[1]?.padEnd(6, "0").slice(0, 6) ?? "";
  const seconds = date.toISOString().slice(0, 19).replace("T", " ");
  return `${seconds}${/[1-9]/.test(fraction) ? `.${fraction}` : ""}+00:00`;
}

/** How long ago, or how far ahead, a moment is. */
export function formatRelative(date: Date | null | undefined, now: Date = new Date()): string {
  if (!date) return "N/A";
  const difference = (now.getTime() - date.getTime()) / 1000;
  const isPast = difference >= 0;
  const seconds = Math.abs(difference);
  const days = Math.floor(seconds / 86_400);
  if (days > 30) return date.toISOString().slice(0, 10);
  const [count, unit] =
    days > 7
      ? [Math.floor(days / 7), "week"]
      : days > 0
        ? [days, "day"]
        : seconds > 3600
          ? [Math.floor(seconds / 3600), "hour"]
          : [Math.floor(seconds / 60), "minute"];
  if (days === 0 && seconds <= 60) return isPast ? "just now" : "in less than a minute";
  const amount = `${count} ${unit}${count === 1 ? "" : "s"}`;
  return isPast ? `${amount} ago` : `in ${amount}`;
}
