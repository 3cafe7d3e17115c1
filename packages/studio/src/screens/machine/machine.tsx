import { useEffect, useState } from "preact/hooks";
import type {
  StudioLane,
  StudioMachine,
  StudioSession,
  StudioSlot,
  StudioUsage,
} from "tinker-ts/wire/studio";
import { call, send } from "../../data/api.js";
import { now } from "../../data/clock.js";
import { saveFile } from "../../data/download.js";
import { connection } from "../../data/events.js";
import { link } from "../../data/location.js";
import { useResource } from "../../data/resource.js";
import { Confirm } from "../../parts/dialog.js";
import { Failure } from "../../parts/failure.js";
import { Shapes } from "../../parts/page.js";
import { attempt } from "../../parts/toast.js";
import { Name } from "../../parts/words.js";
import { toCsv } from "../../text/csv.js";
import { bytes, count, percent, short } from "../../text/numbers.js";
import { ago, moment, span } from "../../text/times.js";
import { Timeline } from "./timeline.js";
import "./machine.css";

const everyMs = 2000;

/** The engine, its queues and its users. */
export function Machine() {
  useEffect(() => {
    document.title = "Machine · Studio";
  }, []);
  const { value, failure, reload } = useResource<StudioMachine>(
    "machine",
    (abort) => call("machine", { signal: abort }),
    {
      topics: ["queue"],
      on(event, known) {
        if (event.kind === "queue" && known) return { ...known, lanes: event.lanes };
        return event.kind === "session" ? "reload" : undefined;
      },
    },
  );
  useEffect(() => {
    const timer = setInterval(reload, everyMs);
    return () => clearInterval(timer);
  }, []);
  const machine = value.value;
  if (!machine) {
    return failure.value ? (
      <Failure failure={failure.value} what="the machine" retry={reload} />
    ) : (
      <Shapes count={4} />
    );
  }
  const { engine, memory, disk, kept } = machine;
  return (
    <div class="stack machine">
      <div class="row">
        <h1>Machine</h1>
        <span class="muted">
          up {span(machine.at - machine.startedAt)}, since {moment(machine.startedAt)}
        </span>
      </div>
      {failure.value && <Failure failure={failure.value} what="the machine" retry={reload} />}
      <div class="tiles">
        <section class="card padded" aria-label="Engine">
          <h2>Engine, last minute</h2>
          <Share
            parts={[
              { name: "training", share: engine.training, class: "a" },
              { name: "sampling", share: engine.sampling, class: "b" },
              { name: "idle", share: engine.idle, class: "c" },
            ]}
          />
          <p class="muted small">
            {engine.device && (
              <span title={engine.device.reason}>
                {engine.device.name === "gpu" ? "GPU" : "processor"} ·{" "}
              </span>
            )}
            {engine.threads} threads · models:{" "}
            {machine.models.map(({ name, isLoaded }) => (
              <span key={name}>
                <Name>{name}</Name> ({isLoaded ? "loaded" : "not loaded"}){" "}
              </span>
            ))}
          </p>
        </section>
        <section class="card padded" aria-label="Memory">
          <h2>Memory</h2>
          <Meter
            used={memory.usedBytes}
            total={memory.totalBytes}
            text={`${bytes(memory.usedBytes)} of ${bytes(memory.totalBytes)}, ${bytes(memory.freeBytes)} free`}
          />
        </section>
        <section class="card padded" aria-label="Disk">
          <h2>Disk</h2>
          <Meter
            used={disk.totalBytes - disk.freeBytes}
            total={disk.totalBytes}
            text={`${bytes(disk.freeBytes)} free of ${bytes(disk.totalBytes)}`}
          />
          <p class="muted small">
            the studio keeps {bytes(kept.seriesBytes)} of curves (at most{" "}
            {bytes(kept.maxSeriesBytes)}), {bytes(kept.exhibitBytes)} of examples (at most{" "}
            {bytes(kept.maxExhibitBytes)}), capture {kept.capture}
          </p>
        </section>
        <section class="card padded" aria-label="Samples">
          <h2>Samples</h2>
          <p class="tabular">
            <strong>{count(machine.samples.running)}</strong> running of{" "}
            {count(machine.samples.places)} places,{" "}
            <strong>{count(machine.samples.waiting)}</strong> waiting
          </p>
          {machine.samples.sessions > 1 && (
            <p class="muted small">{count(machine.samples.sessions)} sessions</p>
          )}
          {machine.samples.note && (
            <p class="small">
              <Name>{machine.samples.note}</Name>
            </p>
          )}
        </section>
      </div>
      <Accounts accounts={machine.accounts ?? []} />
      <section class="card padded stack" aria-label="Timeline">
        <h2>Last ten minutes</h2>
        <Timeline slots={machine.timeline} />
        <Totals slots={machine.timeline} />
      </section>
      <Lanes lanes={machine.lanes} />
      <Sessions machine={machine} reload={reload} />
      <Usage />
    </div>
  );
}

/** What you have spent and wait for; owners who have spent more wait longer. */
function Accounts({ accounts }: { readonly accounts: NonNullable<StudioMachine["accounts"]> }) {
  if (accounts.length === 0) return null;
  return (
    <section class="card scroll-x" aria-label="Turns">
      <table class="table cards">
        <caption class="unseen">Turns that you have spent and wait for</caption>
        <thead>
          <tr>
            <th>Turns at</th>
            <th class="number">Spent</th>
            <th class="number">Waiting</th>
          </tr>
        </thead>
        <tbody>
          {accounts.map(({ resource, spent, waiting }) => (
            <tr key={resource}>
              <td>{resource}</td>
              <td class="number" data-label="spent">
                {short(spent)}
              </td>
              <td class="number" data-label="waiting">
                {count(waiting)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Share({
  parts,
}: {
  readonly parts: readonly { name: string; share: number; class: string }[];
}) {
  return (
    <>
      <div class="share" aria-hidden="true">
        {parts.map(({ name, share, class: look }) => (
          <span key={name} class={look} style={{ width: `${share * 100}%` }} />
        ))}
      </div>
      <p class="row small tabular">
        {parts.map(({ name, share, class: look }) => (
          <span key={name} class="row tight">
            <span class={`key ${look}`} aria-hidden="true" /> {name}{" "}
            <strong>{percent(share)}</strong>
          </span>
        ))}
      </p>
    </>
  );
}

function Meter({
  used,
  total,
  text,
}: {
  readonly used: number;
  readonly total: number;
  readonly text: string;
}) {
  return (
    <>
      <div class="share" aria-hidden="true">
        <span class="a" style={{ width: `${total > 0 ? (used / total) * 100 : 0}%` }} />
      </div>
      <p class="small tabular">{text}</p>
    </>
  );
}

function Totals({ slots }: { readonly slots: readonly StudioSlot[] }) {
  const trained = slots.reduce((sum, { trainedTokens }) => sum + trainedTokens, 0);
  const sampled = slots.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0);
  return (
    <p class="muted small tabular">
      {count(trained)} tokens trained, {count(sampled)} read and sampled
    </p>
  );
}

function Lanes({ lanes }: { readonly lanes: readonly StudioLane[] }) {
  return (
    <section class="card scroll-x" aria-label="Queues">
      <table class="table cards">
        <caption class="unseen">Queues of the models</caption>
        <thead>
          <tr>
            <th>Run</th>
            <th>Running</th>
            <th class="number">Waiting</th>
            <th>Longest wait</th>
            <th>Reason</th>
          </tr>
        </thead>
        <tbody>
          {lanes.length === 0 && (
            <tr>
              <td colSpan={5} class="muted">
                No model is open.
              </td>
            </tr>
          )}
          {lanes.map((lane) => (
            <tr key={lane.model} data-model={lane.model}>
              <td>
                <a href={link(`runs/${encodeURIComponent(lane.run)}`)}>
                  <Name>{lane.runName}</Name>
                </a>
                {!lane.isLive && <span class="muted small"> not in memory</span>}
              </td>
              <td class="tabular" data-label="running">
                {lane.running ? (
                  <>
                    {lane.running.kind}
                    {lane.running.seq !== null && ` ${lane.running.seq}`},{" "}
                    {span(now.value - lane.running.since)}
                  </>
                ) : lane.isPaused ? (
                  "‖ paused in the studio"
                ) : (
                  "–"
                )}
              </td>
              <td class="number" data-label="waiting">
                {count(lane.waiting)}
              </td>
              <td class="tabular" data-label="longest wait">
                {lane.oldestAt === null ? "–" : span(now.value - lane.oldestAt)}
              </td>
              <td>{lane.note && <Name>{lane.note.reason ?? lane.note.state}</Name>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Sessions({
  machine,
  reload,
}: {
  readonly machine: StudioMachine;
  readonly reload: () => void;
}) {
  const [closing, setClosing] = useState<StudioSession | null>(null);
  const isAway = connection.value.state === "waiting";
  return (
    <section class="card scroll-x" aria-label="Sessions">
      <table class="table cards">
        <caption class="unseen">Sessions</caption>
        <thead>
          <tr>
            <th>Session</th>
            <th>Client</th>
            <th>Last seen</th>
            <th class="number">Models</th>
            <th>
              <span class="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {machine.sessions.length === 0 && (
            <tr>
              <td colSpan={5} class="muted">
                No client is connected.
              </td>
            </tr>
          )}
          {machine.sessions.map((session) => (
            <tr key={session.id}>
              <td class="mono">
                <Name>{session.id}</Name>
              </td>
              <td data-label="client">{session.client ? <Name>{session.client}</Name> : "–"}</td>
              <td class="tabular" data-label="seen">
                {ago(session.lastSeenAt, now.value)}
              </td>
              <td class="number" data-label="models">
                {count(session.models.length)}
              </td>
              <td>
                <button
                  type="button"
                  class="button plain"
                  onClick={() => void attempt(() => saveTrace(session.id))}
                >
                  trace for Perfetto
                </button>
                <button
                  type="button"
                  class="button plain danger"
                  disabled={isAway}
                  onClick={() => setClosing(session)}
                >
                  close
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {closing && (
        <Confirm
          title="Close this session?"
          action="Close session"
          run={() =>
            attempt(() => call("closeSession", { params: { id: closing.id } }), "Closed.").then(
              reload,
            )
          }
          close={() => setClosing(null)}
        >
          <p>
            Its {count(closing.models.length)} {closing.models.length === 1 ? "model" : "models"}{" "}
            are unloaded, and its client gets an error with the reason. Saved checkpoints remain.
          </p>
        </Confirm>
      )}
    </section>
  );
}

function Usage() {
  const { value, failure, reload } = useResource<StudioUsage>("usage", (abort) =>
    call("usage", { signal: abort }),
  );
  const rows = value.value?.rows ?? [];
  const columns = ["day", "run", "session", "base model", "trained", "prefill", "sampled"];
  return (
    <section class="card" aria-label="Usage">
      <div class="row padded">
        <h2>Usage</h2>
        <span class="grow" />
        <button
          type="button"
          class="button"
          disabled={rows.length === 0}
          onClick={() =>
            saveFile(
              toCsv([
                columns,
                ...rows.map((row) => [
                  row.day,
                  row.run,
                  row.session,
                  row.baseModel,
                  row.trainingTokens,
                  row.prefillTokens,
                  row.sampledTokens,
                ]),
              ]),
              "usage.csv",
            )
          }
        >
          CSV
        </button>
      </div>
      {failure.value && <Failure failure={failure.value} what="the usage" retry={reload} />}
      <div class="scroll-x">
        <table class="table cards">
          <caption class="unseen">Usage</caption>
          <thead>
            <tr>
              <th>Day</th>
              <th>Run</th>
              <th>Model</th>
              <th class="number">Trained</th>
              <th class="number">Prefill</th>
              <th class="number">Sampled</th>
            </tr>
          </thead>
          <tbody>
            {rows.length === 0 && (
              <tr>
                <td colSpan={6} class="muted">
                  No usage yet.
                </td>
              </tr>
            )}
            {rows.slice(0, 200).map((row, index) => (
              <tr key={index}>
                <td class="tabular">{row.day}</td>
                <td>
                  {row.run ? (
                    <a href={link(`runs/${encodeURIComponent(row.run)}`)}>
                      <Name>{row.runName ?? row.run}</Name>
                    </a>
                  ) : (
                    <span class="muted">without a run</span>
                  )}
                </td>
                <td>
                  <Name>{row.baseModel}</Name>
                </td>
                <td class="number" data-label="trained" title={count(row.trainingTokens)}>
                  {short(row.trainingTokens)}
                </td>
                <td class="number" data-label="prefill" title={count(row.prefillTokens)}>
                  {short(row.prefillTokens)}
                </td>
                <td class="number" data-label="sampled" title={count(row.sampledTokens)}>
                  {short(row.sampledTokens)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

async function saveTrace(session: string): Promise<void> {
  const response = await send(
    "GET",
    `/api/v1/sessions/${encodeURIComponent(session)}/trace_export`,
  );
  saveFile(await response.blob(), `trace-${session}.json`);
}
