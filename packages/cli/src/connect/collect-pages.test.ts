import { expect, it } from "vitest";
import { collectPages } from "./collect-pages.js";

/** A list on a server, and what was asked of it. */
function list(length: number, tellsTotal = true) {
  const asked: [number, number][] = [];
  const getPage = async (limit: number, offset: number) => {
    asked.push([limit, offset]);
    const items = Array.from({ length }, (_, index) => index).slice(offset, offset + limit);
    return { items, totalCount: tellsTotal ? length : undefined };
  };
  return { asked, getPage };
}

it("asks for page after page, each from where the last one ended", async () => {
  const { asked, getPage } = list(25);
  const { items, hidden } = await collectPages(getPage, { limit: 0, offset: 3, pageSize: 10 });
  expect(items).toEqual(Array.from({ length: 22 }, (_, index) => index + 3));
  expect(hidden).toBe(0);
  expect(asked).toEqual([
    [10, 3],
    [10, 13],
    [10, 23],
  ]);
});

it("loads no more than requested, and returns the number left", async () => {
  const { asked, getPage } = list(25);
  const { items, hidden } = await collectPages(getPage, { limit: 12, offset: 0, pageSize: 10 });
  expect(items).toHaveLength(12);
  expect(hidden).toBe(13);
  expect(asked).toEqual([
    [10, 0],
    [2, 10],
  ]);
});

it("ends at a short page if the server sends no total", async () => {
  const { asked, getPage } = list(15, false);
  const { items } = await collectPages(getPage, { limit: 0, offset: 0, pageSize: 10 });
  expect(items).toHaveLength(15);
  expect(asked).toHaveLength(2);
});
