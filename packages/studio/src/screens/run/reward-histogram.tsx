import { count, figure } from "../../text/numbers.js";

/** A range of rewards. */
export interface Bin {
  /** For the address. */
  readonly name: string;
  /** For display. */
  readonly text: string;
  readonly size: number;
  readonly holds: (reward: number | null) => boolean;
}

const maxBins = 12;

/** Rewards in bins of one width; few different ones get a bin each. */
export function binsOf(rewards: readonly (number | null)[]): readonly Bin[] {
  const finite = rewards.filter(
    (reward): reward is number => reward !== null && Number.isFinite(reward),
  );
  if (finite.length === 0) return [];
  const different = [...new Set(finite)].toSorted((one, other) => one - other);
  if (different.length <= maxBins) {
    return different.map((value) => ({
      name: String(value),
      text: figure(value),
      size: finite.filter((one) => one === value).length,
      holds: (reward) => reward === value,
    }));
  }
  const low = different[0]!;
  const width = (different.at(-1)! - low) / maxBins;
  return Array.from({ length: maxBins }, (_, index) => {
    const from = low + index * width;
    const to = from + width;
    const isLast = index === maxBins - 1;
    const holds = (reward: number | null): boolean =>
      reward !== null && reward >= from && (isLast ? reward <= different.at(-1)! : reward < to);
    return {
      name: `${index}`,
      text: `${figure(from)} … ${figure(to)}`,
      size: finite.filter(holds).length,
      holds,
    };
  });
}

/** Bars of rewards; a bar filters the list. */
export function RewardHistogram({
  bins,
  chosen,
  choose,
}: {
  readonly bins: readonly Bin[];
  readonly chosen: string;
  readonly choose: (name: string) => void;
}) {
  if (bins.length === 0) return null;
  const most = Math.max(...bins.map(({ size }) => size));
  return (
    <div class="histogram" role="group" aria-label="Rewards; a bar shows its rollouts only">
      {bins.map(({ name, text, size }) => (
        <button
          key={name}
          type="button"
          aria-pressed={chosen === name}
          title={`reward ${text}: ${size}`}
          onClick={() => choose(name)}
        >
          <span class="tabular small">
            {count(size)}
            <span class="unseen"> {size === 1 ? "rollout" : "rollouts"} of reward </span>
          </span>
          <span
            class="bar"
            style={{ height: `${Math.max(2, Math.round((size / most) * 44))}px` }}
          />
          <span class="tabular small muted cut">{text}</span>
        </button>
      ))}
    </div>
  );
}
