import { buildAssets } from "../scripts/build-assets.mjs";

/** Builds the page, and unpacks the browser once, so that files that run at the same time do not. */
export default async function setup(): Promise<void> {
  await buildAssets();
  const { default: pack } = await import("@sparticuz/chromium");
  await pack.executablePath();
}
