import {
  chooseExhibits,
  type ExhibitContent,
  type ExhibitHead,
  type PreparedExhibits,
} from "../recording/data-exhibits.js";
import { toNumber, toPlain } from "../store/sql.js";
import type { Capture } from "../recording/recorder.js";
import { lineError, numbersOf, type Fields, type Line } from "./log-lines.js";

/** The examples or rollouts of a line, those that are kept; null where none are. */
export function loggedExhibits(line: Line, capture: Capture): PreparedExhibits | null {
  if (capture === "off") return null;
  const given = line.fields[line.kind];
  if (!Array.isArray(given) || given.some((one) => typeof one !== "object" || one === null)) {
    throw lineError(line, line.kind, "must be a list of objects");
  }
  const all = (given as Fields[]).map((one) => toExhibit(one));
  const seed = `${line.run}:${String(line.fields["step"])}`;
  const kept =
    capture === "all"
      ? all.map((_, index) => index)
      : chooseExhibits(
          all.map(({ head: { nll, reward, advantage } }) => ({
            nll: toNumber(nll) ?? null,
            reward: toNumber(reward) ?? null,
            advantage: toNumber(advantage) ?? null,
          })),
          seed,
        );
  return {
    heads: kept.map((index) => all[index]!.head),
    contents: kept.map((index) => all[index]!.content),
    seen: all.length,
  };
}

function toExhibit(one: Fields): { head: ExhibitHead; content: ExhibitContent } {
  const tokens = numbersOf(one["tokens"]) ?? [];
  const sized = (name: string): number[] | undefined => {
    const values = numbersOf(one[name]);
    return values && values.length === tokens.length ? values : undefined;
  };
  const mask = sized("mask");
  const weights = sized("weights");
  const logprobs = sized("logprobs");
  const isTrained = (place: number): boolean =>
    weights ? weights[place] !== 0 : mask ? mask[place] !== 0 : place > 0;
  const trained = tokens.map((_, place) => place).filter(isTrained);
  const sum = logprobs && trained.reduce((total, place) => total + logprobs[place]!, 0);
  const advantage = toNumber(one["advantage"]);
  const advantages =
    sized("advantages") ??
    (advantage === undefined
      ? undefined
      : tokens.map((_, place) => (isTrained(place) ? advantage : 0)));
  const { text, messages, metrics, logs, model, stop } = one;
  const reward = toNumber(one["reward"]);
  return {
    head: {
      group: toNumber(one["group"]) ?? null,
      index: toNumber(one["index"]) ?? 0,
      reward: reward === undefined ? null : toPlain(reward),
      advantage: advantage === undefined ? null : toPlain(advantage),
      nll: sum === undefined || trained.length === 0 ? null : toPlain(-sum / trained.length),
      tokenCount: tokens.length,
      trainedCount: trained.length,
      stopReason: typeof stop === "string" ? stop : null,
    },
    content: {
      columns: {
        tokens,
        weight: weights,
        mask,
        ...(weights ? { logprob: logprobs } : { samplerLogprob: logprobs }),
        advantage: advantages,
        entropy: sized("entropies"),
      },
      extra: { text, messages, metrics, logs, model },
    },
  };
}
