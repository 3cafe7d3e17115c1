type Labels = Readonly<Record<string, string>>;

interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly lines: () => string[];
}

/** A counter; `labels` distinguish several counts of one name. */
export interface Counter {
  add(amount?: number, labels?: Labels): void;
}

/** Sorts observed values into buckets. */
export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

/** Numbers about the server in Prometheus' text format. */
export class MetricsRegistry {
  readonly #families = new Map<string, Family>();

  counter(name: string, help: string): Counter {
    const values = new Map<string, number>();
    this.#families.set(name, { type: "counter", help, lines: () => linesOf(name, values) });
    return {
      add(amount = 1, labels = {}) {
        const key = formatLabels(labels);
        values.set(key, (values.get(key) ?? 0) + amount);
      },
    };
  }

  /** A number that is read on each scrape. */
  gauge(name: string, help: string, read: () => number): void {
    this.gauges(name, help, () => [{ labels: {}, value: read() }]);
  }

  /** Several values of one name, each with its labels. */
  gauges(name: string, help: string, read: () => readonly { labels: Labels; value: number }[]) {
    const lines = (): string[] =>
      read().map(({ labels, value }) => `${name}${formatLabels(labels)} ${value}`);
    this.#families.set(name, { type: "gauge", help, lines });
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const series = new Map<string, { labels: Labels; counts: number[]; sum: number }>();
    const lines = (): string[] =>
      [...series.values()].flatMap(({ labels, counts, sum }) => {
        let total = 0;
        const buckets = [...bounds.map(String), "+Inf"].map((le, index) => {
          total += counts[index] ?? 0;
          return `${name}_bucket${formatLabels({ ...labels, le })} ${total}`;
        });
        const text = formatLabels(labels);
        return [...buckets, `${name}_sum${text} ${sum}`, `${name}_count${text} ${total}`];
      });
    this.#families.set(name, { type: "histogram", help, lines });
    return {
      observe(value, labels = {}) {
        const key = formatLabels(labels);
        let entry = series.get(key);
        if (!entry) series.set(key, (entry = { labels, counts: [], sum: 0 }));
        const found = bounds.findIndex((bound) => value <= bound);
        const index = found < 0 ? bounds.length : found;
        entry.counts[index] = (entry.counts[index] ?? 0) + 1;
        entry.sum += value;
      },
    };
  }

  /** Everything, in the text exposition format. */
  render(): string {
    return [...this.#families]
      .flatMap(([name, { type, help, lines }]) => [
        `# HELP ${name} ${help}`,
        `# TYPE ${name} ${type}`,
        ...lines(),
      ])
      .join("\n")
      .concat("\n");
  }
}

function linesOf(name: string, values: ReadonlyMap<string, number>): string[] {
  return [...values].map(([labels, value]) => `${name}${labels} ${value}`);
}

function formatLabels(labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/["\\\n]/g, (character) => escapes[character]!)}"`,
  );
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

const escapes: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n" };
