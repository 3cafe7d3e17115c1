import { useRef } from "preact/hooks";
import { useKeys } from "../data/keys.js";
import { setQuery } from "../data/location.js";
import {
  clipsOutliers,
  logX,
  logY,
  metricSearch,
  smoothing,
  xAxis,
  xChoices,
  zoom,
} from "./curve-view.js";

/** View options of all charts of a screen. */
export function CurveToolbar({ otherAxes = [] }: { readonly otherAxes?: readonly string[] }) {
  const slider = useRef<HTMLInputElement>(null);
  useKeys([
    { keys: "l", does: "log scale", run: () => setQuery({ logy: logY.value ? null : "1" }) },
    { keys: "s", does: "focus smoothing", run: () => slider.current?.focus() },
    { keys: "0", does: "reset zoom", run: () => (zoom.value = null) },
  ]);
  const choices = [...xChoices];
  for (const key of otherAxes) choices.push({ value: key, name: key });
  if (!choices.some(({ value }) => value === xAxis.value))
    choices.push({ value: xAxis.value, name: xAxis.value });
  return (
    <div class="row curve-toolbar" role="toolbar" aria-label="Curves">
      <label class="choice">
        x
        <select
          class="field x-choice"
          aria-label="x axis"
          value={xAxis.value}
          onChange={(event) => {
            zoom.value = null;
            setQuery({
              x: event.currentTarget.value === "step" ? null : event.currentTarget.value,
              zoom: null,
            });
          }}
        >
          {choices.map(({ value, name }) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <Switch name="logy" text="log y" isOn={logY.value} />
      <Switch name="logx" text="log x" isOn={logX.value} />
      <label class="choice">
        smoothing
        <input
          ref={slider}
          type="range"
          min={0}
          max={0.999}
          step={0.001}
          value={smoothing.value}
          onInput={(event) => (smoothing.value = Number(event.currentTarget.value))}
        />
        <output class="tabular smoothing-value">
          {smoothing.value.toFixed(smoothing.value > 0.99 ? 3 : 2)}
        </output>
      </label>
      <Switch name="clip" text="ignore outliers" isOn={clipsOutliers.value} />
      {zoom.value && (
        <button type="button" class="button" onClick={() => (zoom.value = null)}>
          Show all <kbd>0</kbd>
        </button>
      )}
      <span class="grow" />
      <input
        type="search"
        class="field"
        placeholder="Find a metric"
        aria-label="Find a metric: a part of its name or a regular expression"
        value={metricSearch.value}
        onInput={(event) => setQuery({ find: event.currentTarget.value || null })}
      />
    </div>
  );
}

function Switch({
  name,
  text,
  isOn,
}: {
  readonly name: string;
  readonly text: string;
  readonly isOn: boolean;
}) {
  return (
    <label class="choice">
      <input
        type="checkbox"
        checked={isOn}
        onChange={(event) => setQuery({ [name]: event.currentTarget.checked ? "1" : null })}
      />
      {text}
    </label>
  );
}
