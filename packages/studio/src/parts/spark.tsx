/** A small curve without axes, described by `label`. */
export function Spark({
  values,
  colour,
  label,
  width = 96,
  height = 22,
}: {
  readonly values: readonly (number | null)[];
  readonly colour: string;
  readonly label: string;
  readonly width?: number;
  readonly height?: number;
}) {
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
    >
      <path d={sparkPath(values, width, height)} stroke={colour} />
    </svg>
  );
}

/** The path of a small curve; a hole in the values is a hole in the line. */
export function sparkPath(
  values: readonly (number | null)[],
  width: number,
  height: number,
): string {
  const finite = values.filter((value): value is number => value !== null);
  if (finite.length === 0) return "";
  const low = Math.min(...finite);
  const range = Math.max(...finite) - low;
  const x = (index: number): number =>
    values.length < 2 ? width / 2 : (index / (values.length - 1)) * width;
  const y = (value: number): number =>
    range === 0 ? height / 2 : height - 1 - ((value - low) / range) * (height - 2);
  let path = "";
  let isDown = false;
  values.forEach((value, index) => {
    if (value === null) {
      isDown = false;
      return;
    }
    const isLone = !isDown && (values[index + 1] ?? null) === null;
    path += `${isDown ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    if (isLone) path += "h0.01"; // a single point is drawn by its round cap
    isDown = true;
  });
  return path;
}
