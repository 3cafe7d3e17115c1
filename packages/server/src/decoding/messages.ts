import type { RequestPlace } from "tinker-ts/wire";
import type { BodyForm } from "./body-form.js";

/** A body for the thread; its parts are handed over. */
export interface DecodeOrder {
  readonly id: number;
  readonly parts: readonly Uint8Array[];
  readonly form: BodyForm;
}

/** What the thread answers. */
export type DecodeAnswer = { readonly id: number } & (
  | { readonly kind: "value"; readonly value: unknown }
  /** Objects of classes do not survive the way between threads, so a prompt travels as its parts. */
  | { readonly kind: "sample"; readonly value: Record<string, unknown>; readonly chunks: unknown }
  | { readonly kind: "refused"; readonly status: number; readonly message: string }
  | {
      readonly kind: "undecodable";
      readonly message: string;
      readonly place: RequestPlace | undefined;
    }
  | { readonly kind: "broken"; readonly error: string }
);
