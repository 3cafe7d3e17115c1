import type { Locator, Page } from "playwright-core";

/** Where a chart is pointed at, once its points are there: an empty chart has another range, and leads nowhere. */
export async function planeOf(page: Page, metric: string, points: number): Promise<Locator> {
  const name = `${metric}: ${points.toLocaleString("en")} points`;
  const plane = page.getByRole("slider", { name }).locator(".u-over");
  await plane.waitFor();
  return plane;
}
