import { expect, it } from "vitest";
import { EventHub, type NumberedEvent } from "./event-hub.js";

/** Somebody who looks at everything of an owner. */
function listenTo(hub: EventHub, cursor: string | null = null) {
  const events: NumberedEvent[] = [];
  const tell = (event: NumberedEvent): void => void events.push(event);
  const { isReset, stop } = hub.listen({ owner: "one", topics: new Set(["runs"]), tell }, cursor);
  return { events, isReset, stop };
}

const publish = (hub: EventHub, size: number): void =>
  hub.publish("one", "runs", { kind: "notice", text: "x".repeat(size) } as never);

it("tells those who come back what they missed, in order and once", () => {
  const hub = new EventHub();
  const first = listenTo(hub);
  publish(hub, 10);
  const cursor = hub.cursor(first.events[0]!.n);
  first.stop();
  for (let count = 0; count < 3; count++) publish(hub, 10);
  hub.publish("two", "runs", { kind: "notice", text: "of somebody else" } as never);
  const { events, isReset } = listenTo(hub, cursor);
  expect([isReset, events.map(({ n }) => n)]).toEqual([false, [2, 3, 4]]);
});

it("lets those begin anew who missed more than is to be told at once", () => {
  const hub = new EventHub();
  const first = listenTo(hub);
  publish(hub, 10);
  const cursor = hub.cursor(first.events[0]!.n);
  for (let count = 0; count < 5; count++) publish(hub, 500_000);
  const { events, isReset } = listenTo(hub, cursor);
  expect([isReset, events]).toEqual([true, []]);
});

it("remembers thousands of small events, and few large ones, whoever they are for", () => {
  const forgotten = (count: number, size: number): boolean => {
    const hub = new EventHub();
    listenTo(hub);
    const cursor = hub.cursor();
    for (let n = 0; n < count; n++) {
      hub.publish("one", "run:a", { kind: "notice", text: "x".repeat(size) } as never);
    }
    return listenTo(hub, cursor).isReset;
  };
  expect(forgotten(9000, 10)).toBe(false);
  expect(forgotten(12_000, 10)).toBe(true);
  expect(forgotten(20, 500_000)).toBe(false);
  expect(forgotten(40, 500_000)).toBe(true);
});
