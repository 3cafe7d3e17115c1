import { useSignal } from "@preact/signals";
import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { addressOf, callRaw } from "../../data/api.js";
import { download, saveFile } from "../../data/download.js";
import { link } from "../../data/location.js";
import { useResource } from "../../data/resource.js";
import { Failure } from "../../parts/failure.js";
import { attempt } from "../../parts/toast.js";
import { Name, Words } from "../../parts/words.js";
import { bytes, count, figure } from "../../text/numbers.js";
import { numberOrNull } from "../../data/numbers.js";
import { moment } from "../../text/times.js";

const maxShownBytes = 1_000_000;

/** Checkpoints and files of a run, and the run as one HTML file. */
export function FilesTab({ run }: { readonly run: StudioRunDetail }) {
  const open = useSignal<string | null>(null);
  const save = (name: string): void =>
    void attempt(() =>
      download(
        addressOf("file", { params: { id: run.id, name } }),
        name.split("/").at(-1) ?? "file",
      ),
    );
  return (
    <div class="stack">
      <div class="row">
        <button
          type="button"
          class="button"
          onClick={() =>
            void attempt(async () => {
              const { exportRun } = await import("./export-run.js");
              const name = run.name.replace(/[^\w.-]+/g, "-").slice(0, 80) || "run";
              saveFile(new Blob([await exportRun(run)], { type: "text/html" }), `${name}.html`);
            })
          }
        >
          Save as HTML
        </button>
        <button
          type="button"
          class="button"
          onClick={() =>
            void attempt(() =>
              download(addressOf("csv", { params: { id: run.id } }), "metrics.csv"),
            )
          }
        >
          All points as CSV
        </button>
      </div>
      <section class="card scroll-x" aria-label="Checkpoints">
        {run.checkpoints.length === 0 ? (
          <p class="padded muted">No checkpoints yet.</p>
        ) : (
          <table class="table cards">
            <caption class="unseen">Checkpoints</caption>
            <thead>
              <tr>
                <th>Checkpoint</th>
                <th>Kind</th>
                <th class="number">Step</th>
                <th class="number">nll</th>
                <th class="number">Size</th>
                <th>Saved</th>
                <th>
                  <span class="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {run.checkpoints.toReversed().map((one) => (
                <tr key={one.path}>
                  <td>
                    <Name>{one.name}</Name>
                  </td>
                  <td data-label="kind">{one.kind}</td>
                  <td class="number" data-label="step">
                    {one.step === null ? "–" : count(one.step)}
                  </td>
                  <td class="number" data-label="nll">
                    {figure(numberOrNull(one.nll))}
                  </td>
                  <td class="number" data-label="size">
                    {bytes(one.sizeBytes)}
                  </td>
                  <td class="tabular" data-label="saved">
                    {moment(one.createdAt)}
                  </td>
                  <td>
                    <a href={link("playground", { columns: one.path })}>chat</a>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      <p>
        <a href={link("checkpoints", { run: run.id })}>Download, publish, delete ▸</a>
      </p>
      {run.files.length > 0 && (
        <section class="card scroll-x" aria-label="Files">
          <table class="table">
            <caption class="unseen">Files</caption>
            <thead>
              <tr>
                <th>File</th>
                <th class="number">Size</th>
                <th>
                  <span class="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {run.files.map(({ name, sizeBytes, isText }) => (
                <tr key={name}>
                  <td class="mono">
                    <Name>{name}</Name>
                  </td>
                  <td class="number">{bytes(sizeBytes)}</td>
                  <td class="row">
                    {isText && sizeBytes <= maxShownBytes && (
                      <button
                        type="button"
                        class="button plain"
                        onClick={() => (open.value = name)}
                      >
                        show
                      </button>
                    )}
                    <button type="button" class="button plain" onClick={() => save(name)}>
                      download
                    </button>
                    {name === "trace_events.jsonl" && (
                      <button
                        type="button"
                        class="button plain"
                        onClick={() => void attempt(() => saveTrace(run.id, name))}
                      >
                        for Perfetto
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {open.value !== null && <TextFile key={open.value} run={run.id} name={open.value} />}
    </div>
  );
}

/** Converts events, one per line, to the list that trace viewers read. */
async function saveTrace(id: string, name: string): Promise<void> {
  const response = await callRaw("file", { params: { id, name } });
  const lines = (await response.text()).split("\n").slice(0, -1);
  saveFile(`[\n${lines.join(",\n")}\n]\n`, "trace.json");
}

function TextFile({ run, name }: { readonly run: string; readonly name: string }) {
  const { value, failure, reload } = useResource(`${run} ${name}`, async (signal) =>
    (await callRaw("file", { params: { id: run, name }, signal })).text(),
  );
  if (failure.value) return <Failure failure={failure.value} what={name} retry={reload} />;
  return (
    <section class="stack" aria-label={name}>
      <h2>
        <Name>{name}</Name>
      </h2>
      <pre class="plain-text" tabIndex={0}>
        <Words>{value.value ?? ""}</Words>
      </pre>
    </section>
  );
}
