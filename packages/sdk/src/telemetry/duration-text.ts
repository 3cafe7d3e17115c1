/** A duration as the service reads it: `0:00:05`, `1 day, 1:01:01.500000`. */
export function durationText(durationMs: number): string {
  const totalSeconds = Math.floor(durationMs / 1000);
  const microseconds = Math.round((durationMs - totalSeconds * 1000) * 1000);
  const days = Math.floor(totalSeconds / 86_400);
  const hours = Math.floor((totalSeconds % 86_400) / 3600);
  const minutes = Math.floor((totalSeconds % 3600) / 60);
  const seconds = totalSeconds % 60;
  const pad = (value: number): string => String(value).padStart(2, "0");
  const fraction = microseconds === 0 ? "" : `.${String(microseconds).padStart(6, "0")}`;
  const dayPart = days === 0 ? "" : `${days} day${days === 1 ? "" : "s"}, `;
  return `${dayPart}${hours}:${pad(minutes)}:${pad(seconds)}${fraction}`;
}
