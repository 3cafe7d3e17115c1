const whole = new Intl.NumberFormat("en");

/** A count with separators: 12,345. */
export function count(value: number): string {
  return whole.format(Math.round(value));
}

/** A measured value with as many digits as a reader can use: 9.53, 0.0031, 1.2e-5, NaN. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "−Inf";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-4) return minus(value.toExponential(2).replace("e+", "e"));
  if (Number.isInteger(value)) return minus(whole.format(value));
  if (size >= 1000) return minus(whole.format(Math.round(value * 10) / 10));
  if (size >= 100) return minus(value.toFixed(1));
  if (size >= 1) return minus(value.toFixed(2));
  return minus(value.toPrecision(3));
}

/** All digits of a value, for tooltips and tables. */
export function exactly(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return figure(value);
  return minus(String(Number(value.toPrecision(7))));
}

/** A short form for narrow columns: 1.9k, 3.1M. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value) || Math.abs(value) < 1000) return figure(value);
  const units = ["k", "M", "G", "T"];
  let rest = value / 1000;
  let unit = 0;
  while (Math.abs(rest) >= 999.5 && unit < units.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${minus(rest.toPrecision(Math.abs(rest) >= 99.5 ? 3 : 2))}${units[unit]}`;
}

/** A size in bytes: 18 MB. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value < 1000) return `${value} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let rest = value / 1000;
  let unit = 0;
  while (rest >= 999.5 && unit < units.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${rest < 9.95 ? rest.toFixed(1) : Math.round(rest)} ${units[unit]}`;
}

/** A share: 41 %. */
export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function minus(text: string): string {
  return text.replaceAll("-", "−");
}
