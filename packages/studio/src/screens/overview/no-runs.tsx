import { useState } from "preact/hooks";
import { hello } from "../../data/login.js";
import { Command } from "../../parts/command.js";
import { Dialog } from "../../parts/dialog.js";

/** A server without runs: three ways to start one; the page changes when a run begins. */
export function NoRuns() {
  return (
    <div class="stack no-runs">
      <h1>No runs yet</h1>
      <p class="waiting" role="status">
        <span class="pulse" aria-hidden="true" /> waiting for the first step
      </p>
      <Ways />
    </div>
  );
}

/** A button that shows the three ways. */
export function OwnRun() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="button" onClick={() => setOpen(true)}>
        Start your own ▸
      </button>
      {isOpen && (
        <Dialog title="Start your own run" close={() => setOpen(false)}>
          <Ways />
          <form method="dialog">
            <button type="submit" class="button">
              Close
            </button>
          </form>
        </Dialog>
      )}
    </>
  );
}

function Ways() {
  const address = hello.value?.address ?? location.origin;
  const model = hello.value?.models?.[0] ?? "tinker-ts/sprout";
  return (
    <>
      <section class="stack">
        <h2>Half a minute, from the command line</h2>
        <Command>{`npx tinker-ts quickstart --base-url ${address} --model ${model}`}</Command>
      </section>
      <section class="stack">
        <h2>TypeScript</h2>
        <Command>
          {`import { ServiceClient } from "tinker-ts";

const service = new ServiceClient({ baseUrl: "${address}" });
const training = await service.createLoraTrainingClient({ baseModel: "${model}", rank: 32 });`}
        </Command>
      </section>
      <section class="stack">
        <h2>Python, unchanged</h2>
        <Command>{`TINKER_BASE_URL=${address} TINKER_API_KEY=tml-local python train.py`}</Command>
      </section>
    </>
  );
}
