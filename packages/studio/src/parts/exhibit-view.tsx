import { useSignal } from "@preact/signals";
import type { StudioExhibitDetail } from "tinker-ts/wire/studio";
import { call } from "../data/api.js";
import { queryValue, setQuery } from "../data/location.js";
import { useResource } from "../data/resource.js";
import { count, exactly, figure, percent } from "../text/numbers.js";
import { numberOrNull } from "../data/numbers.js";
import { visible } from "../text/visible.js";
import { Copy } from "./copy.js";
import { Failure } from "./failure.js";
import { Shapes } from "./page.js";
import type { TokenColour } from "./token-colours.js";
import { TokenView } from "./token-view.js";
import { Name, Words } from "./words.js";

const pageTokens = 4000;
const colour = queryValue("colour", "weight");
const form = queryValue("as", "tokens");
const forms = ["tokens", "messages", "text", "raw"] as const;

/** One example, rollout or sample, token by token; with its text and raw record. */
export function ExhibitView({ id }: { readonly id: string }) {
  const from = useSignal(0);
  const { value, failure, reload } = useResource<StudioExhibitDetail>(
    `${id} ${from.value}`,
    (signal) =>
      call("exhibit", {
        params: { id },
        query: { from: from.value, to: from.value + pageTokens },
        signal,
      }),
  );
  const exhibit = value.value;
  if (!exhibit || exhibit.id !== id) {
    return failure.value ? (
      <Failure failure={failure.value} what="this example" retry={reload} />
    ) : (
      <Shapes count={2} />
    );
  }
  const { tokens, messages, text, tokenCount } = exhibit;
  const shown = form.value === "messages" && !messages ? "tokens" : form.value;
  const raw = JSON.stringify(exhibit.raw, null, 2);
  return (
    <div class="stack exhibit">
      <Facts exhibit={exhibit} />
      {exhibit.warnings.map((warning) => (
        <p key={warning} class="notice warning">
          ⚠ {visible(warning)}
        </p>
      ))}
      <div class="row">
        {forms
          .filter((name) => name !== "messages" || messages)
          .map((name) => (
            <button
              key={name}
              type="button"
              class="button"
              aria-pressed={shown === name}
              onClick={() => setQuery({ as: name === "tokens" ? null : name })}
            >
              {name}
            </button>
          ))}
        <Copy text={shown === "raw" ? raw : (text ?? tokens.pieces.join(""))} label="Copy" />
        {tokenCount > pageTokens && shown === "tokens" && (
          <span class="row tabular">
            <button
              type="button"
              class="button"
              disabled={from.value === 0}
              onClick={() => (from.value -= pageTokens)}
            >
              ◂
            </button>
            tokens {count(from.value)}–{count(Math.min(tokenCount, from.value + pageTokens) - 1)} of{" "}
            {count(tokenCount)}
            <button
              type="button"
              class="button"
              disabled={from.value + pageTokens >= tokenCount}
              onClick={() => (from.value += pageTokens)}
            >
              ▸
            </button>
          </span>
        )}
      </div>
      {shown === "tokens" && (
        <TokenView
          tokens={tokens}
          from={exhibit.from}
          colour={colour.value as TokenColour}
          setColour={(next) => setQuery({ colour: next })}
        />
      )}
      {shown === "messages" && (
        <ol class="messages">
          {messages!.map(({ role, content }, index) => (
            <li key={index}>
              <span class="tag">
                <Name>{role}</Name>
              </span>
              <pre>
                <Words>{content}</Words>
              </pre>
            </li>
          ))}
        </ol>
      )}
      {shown === "text" && (
        <pre class="plain-text">
          <Words>{text ?? tokens.pieces.join("")}</Words>
        </pre>
      )}
      {shown === "raw" && <pre class="plain-text">{visible(raw)}</pre>}
      {exhibit.logs.length > 0 && (
        <details>
          <summary>Environment log ({exhibit.logs.length})</summary>
          <pre class="plain-text">{exhibit.logs.map(visible).join("\n")}</pre>
        </details>
      )}
    </div>
  );
}

function Facts({ exhibit }: { readonly exhibit: StudioExhibitDetail }) {
  const { tokenCount, trainedCount, kind, stopReason, weights } = exhibit;
  const nll = numberOrNull(exhibit.nll);
  const reward = numberOrNull(exhibit.reward);
  const advantage = numberOrNull(exhibit.advantage);
  const share = tokenCount > 0 ? trainedCount / tokenCount : 0;
  return (
    <p class="tabular">
      {kind === "datum" ? (
        <>
          <strong>
            {count(trainedCount)} of {count(tokenCount)} tokens trained
          </strong>{" "}
          ({percent(share)})
        </>
      ) : (
        <strong>{count(tokenCount)} tokens</strong>
      )}
      {reward !== null && ` · reward ${figure(reward)}`}
      {advantage !== null && ` · advantage ${figure(advantage)}`}
      {nll !== null && ` · nll ${figure(nll)}`}
      {stopReason && ` · stop reason: ${visible(stopReason)}`}
      {weights && (
        <span class="muted">
          {" · "}weights <Name>{weights}</Name>
        </span>
      )}
      {Object.entries(exhibit.metrics).map(([name, value]) => (
        <span key={name} class="muted">
          {" · "}
          <Name>{name}</Name> {typeof value === "number" ? exactly(value) : visible(String(value))}
        </span>
      ))}
    </p>
  );
}
