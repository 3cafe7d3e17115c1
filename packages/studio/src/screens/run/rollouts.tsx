import type { StudioExhibit, StudioRunDetail } from "tinker-ts/wire/studio";
import type { ExhibitsState } from "../../data/exhibits.js";
import { queryValue, setQuery } from "../../data/location.js";
import { numberOrNull } from "../../data/numbers.js";
import { Name } from "../../parts/words.js";
import { count, figure } from "../../text/numbers.js";
import { ExhibitBrowser, type ExhibitLine } from "./exhibit-browser.js";
import { binsOf, RewardHistogram, type Bin } from "./reward-histogram.js";
import { groupsOf, orders, sortedGroups, type Group, type Order } from "./rollout-groups.js";

const order = queryValue("order", "group");
const bin = queryValue("reward");
/** Bins are computed once for each list. */
const madeBins = new WeakMap<ExhibitsState, readonly Bin[]>();

/** Rollouts of a step by group, with their rewards; one of them token by token. */
export function Rollouts({ run }: { readonly run: StudioRunDetail }) {
  const arrange = (list: ExhibitsState): ExhibitLine[] => {
    const chosen = chosenIn(list);
    const all = list.exhibits;
    const kept = chosen ? all.filter(({ reward }) => chosen.holds(numberOrNull(reward))) : all;
    const isSampled = list.seen !== null && list.seen > all.length;
    return sortedGroups(groupsOf(kept, all), order.value as Order).flatMap(
      (group): ExhibitLine[] => [
        {
          key: `group ${group.name}`,
          heading: <GroupHeading group={group} isSampled={isSampled} />,
        },
        ...group.members.map((exhibit) => ({ exhibit })),
      ],
    );
  };
  return (
    <ExhibitBrowser
      run={run}
      kind="rollout"
      what={["rollout", "rollouts"]}
      facts={RolloutFacts}
      note={(list) => {
        const chosen = chosenIn(list);
        return chosen ? ` with reward ${chosen.text}` : "";
      }}
      controls={<OrderChoice />}
      above={(list) => (
        <RewardHistogram
          bins={binsIn(list)}
          chosen={bin.value}
          choose={(name) => setQuery({ reward: name === bin.value ? null : name })}
        />
      )}
      arrange={arrange}
      arrangedBy={`${order.value} ${bin.value}`}
    />
  );
}

function binsIn(list: ExhibitsState): readonly Bin[] {
  const bins = madeBins.get(list) ?? binsOf(list.exhibits.map((one) => numberOrNull(one.reward)));
  madeBins.set(list, bins);
  return bins;
}

function chosenIn(list: ExhibitsState): Bin | undefined {
  return binsIn(list).find(({ name }) => name === bin.value);
}

function OrderChoice() {
  return (
    <label class="choice">
      order
      <select
        class="field"
        value={order.value}
        onChange={(event) => setQuery({ order: event.currentTarget.value })}
      >
        {orders.map(({ value, name }) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function GroupHeading({
  group,
  isSampled,
}: {
  readonly group: Group;
  /** Whether only some rollouts of the step were kept. */
  readonly isSampled: boolean;
}) {
  const { name, mean, deviation, size, hasGradient } = group;
  return (
    <>
      <strong>{name}</strong>
      <span class="tabular muted">
        {count(size)}
        {isSampled && " kept"} · mean{isSampled && " of these"} {figure(mean)} ± {figure(deviation)}
      </span>
      {!hasGradient && (
        <span class="tag" title="All advantages are zero">
          no gradient
        </span>
      )}
    </>
  );
}

function RolloutFacts({ index, reward, advantage, tokenCount, stopReason }: StudioExhibit) {
  const value = numberOrNull(advantage);
  return (
    <>
      #{index} · reward <strong>{figure(numberOrNull(reward))}</strong>
      {value !== null && (
        <span class={value > 0 ? "good" : value < 0 ? "bad" : ""}>
          {" "}
          A {value > 0 ? "+" : ""}
          {figure(value)}
        </span>
      )}{" "}
      · {count(tokenCount)} tokens
      {stopReason && (
        <>
          {" · "}
          <Name>{stopReason}</Name>
        </>
      )}
    </>
  );
}
