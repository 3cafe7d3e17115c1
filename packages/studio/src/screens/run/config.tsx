import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { flattened } from "../../data/flatten.js";
import { Copy } from "../../parts/copy.js";
import { Name, Words } from "../../parts/words.js";
import { Controls } from "./controls.js";

/** The configuration of a run. */
export function ConfigTab({ run }: { readonly run: StudioRunDetail }) {
  const rows = [...flattened(run.config)];
  const facts: [string, string | null][] = [
    ["id", run.id],
    ["models", run.models.join(", ") || null],
    ["base model", run.baseModel],
    ["rank", run.rank === null ? null : String(run.rank)],
    ["group", run.group],
    [
      "source",
      {
        server: "recorded by the server",
        log: "a logger",
        folder: "a folder",
      }[run.source],
    ],
    ["folder", run.folder],
    ["created from", run.parent],
  ];
  return (
    <div class="stack">
      <Controls run={run} />
      <div class="card scroll-x">
        <table class="table">
          <caption class="unseen">The run</caption>
          <tbody>
            {facts
              .filter((fact): fact is [string, string] => fact[1] !== null)
              .map(([name, value]) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td class="mono">
                    <Name>{value}</Name>
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
      {rows.length === 0 ? (
        <p class="muted">No configuration logged. Pass one to RunLog as `config`.</p>
      ) : (
        <div class="card scroll-x">
          <table class="table">
            <caption class="unseen">Configuration</caption>
            <tbody>
              {rows.map(([key, value]) => (
                <tr key={key}>
                  <th scope="row" class="mono">
                    <Name>{key}</Name>
                  </th>
                  <td class="mono">
                    <Words>{value}</Words>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div class="row">
        <Copy text={JSON.stringify(run.config, null, 2) ?? "null"} label="Copy as JSON" />
      </div>
    </div>
  );
}
