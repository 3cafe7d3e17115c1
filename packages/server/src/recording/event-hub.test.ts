import { expect, it } from "vitest";
import { ManualClock } from "../../test/support/manual-clock.js";
import { EventHub, type NumberedEvent } from "./event-hub.js";

const makeHub = (clock = new ManualClock()) =>
  new EventHub(clock, { logOfModel: (id) => (id === "model" ? "watcher" : undefined) });

/** Subscribes to an owner's topics. */
function listenTo(hub: EventHub, cursor: string | null = null, topics = ["runs"]) {
  const events: NumberedEvent[] = [];
  const send = (event: NumberedEvent): void => void events.push(event);
  const { isReset, stop } = hub.listen({ owner: "one", topics: new Set(topics), send }, cursor);
  return { events, isReset, stop };
}

const publish = (hub: EventHub, run: string, owner = "one"): void =>
  hub.publish(owner, "runs", { kind: "run", run, version: 1 });

it("sends a page that reconnects what it missed, in order and once", () => {
  const hub = makeHub();
  const first = listenTo(hub);
  publish(hub, "a");
  const cursor = hub.cursor(first.events[0]!.n);
  first.stop();
  for (const run of ["b", "c", "d"]) publish(hub, run);
  publish(hub, "e", "two");
  const { events, isReset } = listenTo(hub, cursor);
  expect([isReset, events.map(({ n }) => n)]).toEqual([false, [2, 3, 4]]);
});

it("sends only the latest event of a run, however many a page missed", () => {
  const hub = makeHub();
  const cursor = hub.cursor();
  for (let count = 0; count < 20_000; count++) publish(hub, `run-${count % 2}`);
  const { events, isReset } = listenTo(hub, cursor);
  expect([isReset, events.map(({ n }) => n)]).toEqual([false, [19_999, 20_000]]);
});

it("makes a page fetch everything again when it missed events of more runs than are remembered", () => {
  const isReset = (count: number): boolean => {
    const hub = makeHub();
    const cursor = hub.cursor();
    for (let run = 0; run < count; run++) publish(hub, `run-${run}`);
    return listenTo(hub, cursor).isReset;
  };
  expect(isReset(9000)).toBe(false);
  expect(isReset(12_000)).toBe(true);
});

it("publishes many changes of a run as one event of each kind, also to the run that logs the model", async () => {
  const clock = new ManualClock();
  const hub = makeHub(clock);
  const { events } = listenTo(hub, null, ["runs", "run:model", "run:watcher"]);
  for (let count = 0; count < 3; count++) hub.noteChange("one", "model", "series");
  hub.noteChange("one", "model", "checkpoint");
  hub.noteChange("two", "other", "series");
  expect(events).toEqual([]);
  await clock.advance(250);
  const sent = events.map(({ topic, kind, data }) => [topic, kind, JSON.parse(data) as object]);
  expect(sent).toEqual([
    ["runs", "run", { run: "watcher", version: 4 }],
    ["run:watcher", "series", { run: "watcher", version: 4 }],
    ["run:model", "series", { run: "model", version: 4 }],
    ["runs", "checkpoint", { run: "watcher", version: 4 }],
  ]);
});
