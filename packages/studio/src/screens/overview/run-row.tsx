import type { StudioNumber, StudioRun } from "tinker-ts/wire/studio";
import { now } from "../../data/clock.js";
import { colourOf } from "../../data/colours.js";
import { link } from "../../data/location.js";
import { lossName } from "../../data/loss-name.js";
import { numberOf } from "../../data/numbers.js";
import { Icon } from "../../parts/icon.js";
import { Spark } from "../../parts/spark.js";
import { Status } from "../../parts/status.js";
import { Name } from "../../parts/words.js";
import { count, figure, short } from "../../text/numbers.js";
import { ago } from "../../text/times.js";
import { visible, visibleName } from "../../text/visible.js";

/** One run of the list. */
export function RunRow({
  run,
  isActive,
  isSelected,
  toggle,
}: {
  readonly run: StudioRun;
  readonly isActive: boolean;
  readonly isSelected: boolean;
  readonly toggle: (id: string) => void;
}) {
  const { id, name, status, statusReason, nll, reward } = run;
  const colour = colourOf(id);
  const model = run.baseModel?.split("/").at(-1) ?? null;
  return (
    <div
      class={`run-row ${isActive ? "active" : ""} ${isSelected ? "selected" : ""}`}
      role="row"
      aria-selected={isSelected}
      data-run={id}
    >
      <span role="cell" class="select">
        <input
          type="checkbox"
          aria-label={`Select ${visibleName(name)}`}
          checked={isSelected}
          onChange={() => toggle(id)}
        />
      </span>
      <span role="cell" class="title">
        <span class="first">
          <span class="swatch" style={{ background: colour }} />
          <a class="cut" href={link(`runs/${encodeURIComponent(id)}`)}>
            <Name>{name}</Name>
          </a>
          {run.isPinned && (
            <span class="pin" title="Pinned">
              <Icon name="pin" size={13} />
              <span class="unseen">pinned</span>
            </span>
          )}
          {run.tags.slice(0, 3).map((tag) => (
            <span key={tag} class="tag">
              <Name>{tag}</Name>
            </span>
          ))}
        </span>
        <span class="second cut">
          {status === "failed" && statusReason ? (
            <span class="bad" title={visible(statusReason)}>
              <Name>{statusReason}</Name>
            </span>
          ) : (
            <Details run={run} model={model} />
          )}
        </span>
      </span>
      <span
        role="cell"
        class="wide-only cut"
        title={run.baseModel ? visible(run.baseModel) : undefined}
      >
        {model ? <Name>{model}</Name> : "–"}
      </span>
      <span role="cell" class="state">
        <Status status={status} reason={statusReason} progress={run.progress} />
      </span>
      <span role="cell" class="number step" data-label="step">
        {count(run.step)}
      </span>
      <span
        role="cell"
        class="number nll"
        data-label={lossName(run.kind)}
        title={nll && lossName(run.kind) === "loss" ? "loss (not an nll)" : undefined}
      >
        <Value value={nll?.last} nonFinite={nll?.nonFinite ?? 0} />
      </span>
      <span role="cell" class="number reward" data-label="reward">
        <Value value={reward?.last} nonFinite={reward?.nonFinite ?? 0} />
      </span>
      <span role="cell" class="number wide-only">
        {short(run.tokensPerSecond)}
      </span>
      <span role="cell" class="curve">
        <Spark
          values={run.curve}
          colour={colour}
          label={`${nll ? lossName(run.kind) : "reward"} from ${figure(run.curve.find((value) => value !== null))} to ${figure(run.curve.findLast((value) => value !== null))}`}
        />
      </span>
      <span role="cell" class="number muted updated">
        {ago(run.updatedAt, now.value)}
      </span>
    </div>
  );
}

/** The line before the runs of a group. */
export function GroupRow({ name, size }: { readonly name: string; readonly size: number }) {
  return (
    <div class="run-row group" role="row">
      <span role="cell" class="cut">
        <Name>{name}</Name> <span class="muted tabular">{count(size)}</span>
      </span>
    </div>
  );
}

function Details({ run, model }: { readonly run: StudioRun; readonly model: string | null }) {
  const parts = [
    run.kind === "unknown"
      ? null
      : { supervised: "supervised", rl: "RL", preference: "preference" }[run.kind],
    run.rank === null ? null : `rank ${run.rank}`,
    run.group,
    run.source === "folder" ? "from a folder" : null,
    run.attempt > 1 ? `attempt ${run.attempt}` : null,
    run.dropped > 0 ? `${count(run.dropped)} records dropped` : null,
  ].filter((part) => part !== null);
  return (
    <>
      {model && <span class="narrow-only">{visibleName(model)} · </span>}
      <Name>{parts.join(" · ")}</Name>
    </>
  );
}

function Value({
  value,
  nonFinite,
}: {
  readonly value: StudioNumber | undefined;
  readonly nonFinite: number;
}) {
  const number = value === undefined ? undefined : numberOf(value);
  return (
    <>
      {nonFinite > 0 && (
        <span class="warn" title={`${count(nonFinite)} values are not finite`}>
          ▲<span class="unseen">{count(nonFinite)} values are not finite</span>
        </span>
      )}
      <span class={number !== undefined && !Number.isFinite(number) ? "bad" : ""}>
        {figure(number)}
      </span>
    </>
  );
}
