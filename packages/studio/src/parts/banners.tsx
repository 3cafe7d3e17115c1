import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { StudioMachine } from "tinker-ts/wire/studio";
import { call } from "../data/api.js";
import { now } from "../data/clock.js";
import { connection } from "../data/events.js";
import { link } from "../data/location.js";
import { hello } from "../data/login.js";
import { bytes } from "../text/numbers.js";
import { span } from "../text/times.js";
import { visible, visibleName } from "../text/visible.js";

const diskCheckEveryMs = 60_000;
const disk = signal<StudioMachine["disk"] | null>(null);
let firstVersion: string | null = null;

/** Notices for every screen: a lost connection, a newer version, a full disk. */
export function Banners() {
  useEffect(() => {
    const check = (): void => {
      call<StudioMachine>("machine").then(
        (machine) => (disk.value = machine.disk),
        () => undefined, // the dot shows a lost connection
      );
    };
    check();
    const timer = setInterval(check, diskCheckEveryMs);
    return () => clearInterval(timer);
  }, []);
  const state = connection.value;
  const version = hello.value?.version ?? null;
  firstVersion ??= version;
  const full = disk.value?.isNearlyFull ? disk.value : null;
  return (
    <div class="banners">
      {state.state === "waiting" && now.value - state.since > 3000 && (
        <div class="notice warning" role="status">
          The server does not answer. The page shows data from {span(now.value - state.since)} ago
          and reconnects automatically.
        </div>
      )}
      {version !== null && version !== firstVersion && (
        <div class="notice" role="status">
          <span class="grow">The server is now version {visible(version)}.</span>
          <button type="button" class="button" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      )}
      {full && (
        <div class="notice warning" role="status">
          <span class="grow">
            The disk is nearly full: {bytes(full.freeBytes)} free.{" "}
            {full.largest.slice(0, 3).map(({ what, sizeBytes }) => (
              <span key={what}>
                <bdi>{visibleName(what)}</bdi> {bytes(sizeBytes)}.{" "}
              </span>
            ))}
          </span>
          <a class="button" href={link("checkpoints", { sort: "-size" })}>
            Free space
          </a>
        </div>
      )}
    </div>
  );
}
