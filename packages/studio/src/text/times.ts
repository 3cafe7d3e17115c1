/** A span of time in its largest unit: 2 s, 4 min, 6 d. */
export function span(ms: number): string {
  const s = Math.max(0, ms / 1000);
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 9.95) return `${Number(s.toFixed(1))} s`;
  if (s < 100) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 172_800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86_400)} d`;
}

/** How long ago something was, for a table. */
export function ago(time: number, now: number): string {
  const ms = now - time;
  return ms < 1500 ? "now" : span(Math.floor(ms / 1000) * 1000);
}

/** Date and time of day in the reader's own zone. */
export function moment(time: number): string {
  const date = new Date(time);
  const two = (part: number): string => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
