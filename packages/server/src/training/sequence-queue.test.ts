import fc from "fast-check";
import { expect, it } from "vitest";
import { SequenceQueue } from "./sequence-queue.js";

const numbered = (seq: number | null, label = "") => ({ seq, label });

it("gives numbered entries out in their order, whatever order they arrive in", () => {
  fc.assert(
    fc.property(
      fc.shuffledSubarray([1, 2, 3, 4, 5, 6, 7, 8], { minLength: 8 }),
      fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
      (arrivals, takesBetween) => {
        const queue = new SequenceQueue<{ seq: number | null }>(1);
        const taken: (number | null)[] = [];
        const takeAll = (): void => {
          for (let entry = queue.take(); entry; entry = queue.take()) taken.push(entry.seq);
        };
        arrivals.forEach((seq, index) => {
          queue.add({ seq });
          if (takesBetween[index]) takeAll();
        });
        takeAll();
        expect(taken).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      },
    ),
  );
});

it("waits at a gap and names the missing number", () => {
  const queue = new SequenceQueue(1);
  queue.add(numbered(3));
  expect(queue.take()).toBeUndefined();
  expect(queue.missingSeq).toBe(1);
  queue.add(numbered(1));
  expect(queue.missingSeq).toBeNull();
  expect(queue.take()?.seq).toBe(1);
  expect(queue.missingSeq).toBe(2);
});

it("lets entries without a number pass a gap, in the order of their arrival", () => {
  const queue = new SequenceQueue<{ seq: number | null; label: string }>(1);
  queue.add(numbered(2, "second"));
  queue.add(numbered(null, "loose a"));
  queue.add(numbered(null, "loose b"));
  queue.add(numbered(1, "first"));
  const order = [queue.take(), queue.take(), queue.take(), queue.take()];
  expect(order.map((entry) => entry?.label)).toEqual(["loose a", "loose b", "first", "second"]);
});

it("refuses a number that was used", () => {
  const queue = new SequenceQueue(5);
  expect(() => queue.add(numbered(4))).toThrow("has been used");
  queue.add(numbered(5));
  expect(() => queue.add(numbered(5))).toThrow("has been used");
});
