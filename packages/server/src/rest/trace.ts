import type { TimelineRow } from "../store/requests-table.js";
import type { Store } from "../store/store.js";

/*
 * The trace is Chrome's trace event JSON. Perfetto opens it like its own binary format, so do
 * other viewers, and it can be read without any tool at all.
 *
 * - Work on a model is a slice on that model's own track; a model does one thing at a time.
 * - Every request is also an asynchronous slice from its acceptance to its end, with its waiting and
 *   its computing inside, because requests overlap.
 */

const pageRows = 2000;
const processId = 1;
const encoder = new TextEncoder();

interface TraceEvent {
  readonly ph: "X" | "M" | "b" | "e";
  readonly name: string;
  readonly ts?: number;
  readonly [field: string]: unknown;
}

/** Streams the timeline of a session. */
export async function* traceStream(store: Store, sessionId: string): AsyncGenerator<Uint8Array> {
  const tracks = new Map<string, number>();
  yield encoder.encode('{"displayTimeUnit":"ms","traceEvents":[\n');
  yield encoder.encode(line(metadata("process_name", 0, `session ${sessionId}`)));
  let rowId = 0;
  for (;;) {
    const rows = store.requests.timeline(sessionId, rowId, pageRows);
    const events = rows.flatMap((row) => eventsOf(row, tracks));
    if (events.length > 0) yield encoder.encode(events.map((event) => `,${line(event)}`).join(""));
    if (rows.length < pageRows) break;
    rowId = rows.at(-1)!.rowId;
  }
  yield encoder.encode("]}\n");
}

function eventsOf(row: TimelineRow, tracks: Map<string, number>): TraceEvent[] {
  const trackName = row.modelId ?? row.samplerId ?? "samples without a session";
  const known = tracks.get(trackName);
  const track = known ?? tracks.size + 1;
  tracks.set(trackName, track);
  const name = row.seq === null ? row.kind : `${row.kind} ${row.seq}`;
  const args = { request: row.requestId, state: row.state, tokens: row.tokens };
  const events: TraceEvent[] = [];
  if (known === undefined) events.push(metadata("thread_name", track, trackName));
  const phase = (label: string, from: number, to: number | null): void => {
    const common = { name: label, cat: row.kind, id: row.rowId, pid: processId, tid: track };
    events.push({ ph: "b", ts: from * 1000, args, ...common });
    if (to !== null) events.push({ ph: "e", ts: to * 1000, ...common });
  };
  phase(name, row.acceptedAt, row.finishedAt);
  phase("queue", row.acceptedAt, row.startedAt ?? row.finishedAt);
  if (row.startedAt === null) return events;
  phase("compute", row.startedAt, row.finishedAt);
  if (row.modelId !== null && row.finishedAt !== null) {
    const dur = (row.finishedAt - row.startedAt) * 1000;
    const ts = row.startedAt * 1000;
    events.push({ ph: "X", name, cat: "model", ts, dur, pid: processId, tid: track, args });
  }
  return events;
}

function metadata(kind: string, track: number, name: string): TraceEvent {
  return { ph: "M", name: kind, pid: processId, tid: track, args: { name } };
}

function line(event: TraceEvent): string {
  return `${JSON.stringify(event)}\n`;
}
