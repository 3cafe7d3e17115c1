import { useEffect, useRef } from "preact/hooks";
import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { call } from "../../data/api.js";
import { link, queryValue, segments } from "../../data/location.js";
import { useResource } from "../../data/resource.js";
import { Failure } from "../../parts/failure.js";
import { Shapes } from "../../parts/page.js";
import { visibleName } from "../../text/visible.js";
import { ConfigTab } from "./config.js";
import { Curves } from "./curves.js";
import { DataTab } from "./data.js";
import { FilesTab } from "./files.js";
import { RunHeader } from "./header.js";
import { LogTab } from "./log.js";
import { Rollouts } from "./rollouts.js";
import { SamplesTab } from "./samples.js";
import "./run.css";

const tab = queryValue("tab", "curves");
const tabs = [
  { value: "curves", name: "Curves", Tab: Curves },
  { value: "rollouts", name: "Rollouts", Tab: Rollouts },
  { value: "data", name: "Data", Tab: DataTab },
  { value: "samples", name: "Samples", Tab: SamplesTab },
  { value: "log", name: "Log", Tab: LogTab },
  { value: "config", name: "Config", Tab: ConfigTab },
  { value: "files", name: "Files", Tab: FilesTab },
];

/** One run, with all of its data. */
export function RunScreen() {
  const id = segments.value[1] ?? "";
  const { value, failure, reload } = useResource<StudioRunDetail>(
    id,
    (signal) => call("run", { params: { id }, signal }),
    {
      topics: [`run:${id}`],
      on: (event) =>
        event.kind === "checkpoint" || (event.kind === "run" && event.run === id)
          ? "reload"
          : undefined,
    },
  );
  const run = value.value;
  const tabBar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // On a narrow screen the tabs can be moved; the current one stays visible.
    tabBar.current
      ?.querySelector("[aria-current]")
      ?.scrollIntoView({ inline: "center", block: "nearest" });
  }, [tab.value, run === undefined]);
  useEffect(() => {
    if (run) document.title = `${visibleName(run.name)} · Studio`;
  }, [run?.name]);
  if (!run) {
    return failure.value ? (
      <Failure failure={failure.value} what="this run" retry={reload} />
    ) : (
      <Shapes count={5} />
    );
  }
  const { Tab } = tabs.find(({ value: name }) => name === tab.value) ?? tabs[0]!;
  // Most runs have none; their tab is shown if there are some.
  const hasSamples = run.exhibitSteps.sample.length > 0 || tab.value === "samples";
  const shown = tabs.filter(({ value: name }) => name !== "samples" || hasSamples);
  return (
    <div class="stack run">
      <RunHeader run={run} reload={reload} />
      <div ref={tabBar} class="tabs" role="navigation" aria-label="Parts of the run">
        {shown.map(({ value: name, name: text }) => (
          <a
            key={name}
            href={link(`runs/${encodeURIComponent(id)}`, { tab: name === "curves" ? null : name })}
            aria-current={tab.value === name ? "page" : undefined}
          >
            {text}
            <TabCount run={run} tab={name} />
          </a>
        ))}
      </div>
      {failure.value && <Failure failure={failure.value} what="this run" retry={reload} />}
      <Tab run={run} />
    </div>
  );
}

function TabCount({ run, tab: name }: { readonly run: StudioRunDetail; readonly tab: string }) {
  const size = name === "files" ? run.files.length + run.checkpoints.length : 0;
  return size > 0 ? <span class="muted tabular"> {size}</span> : null;
}
