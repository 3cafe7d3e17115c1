import type { RequestPlace } from "tinker-ts/wire";
import type { ProtoTypeName } from "tinker-ts/wire";
import type { StoredPayload } from "../store/payloads.js";
import type { AnswerShape } from "../structure/answer-grammar.js";
import type { BodyForm } from "./body-form.js";
import type { ChatText } from "./chat-text.js";
import type { JsonTextForm } from "./json-text.js";

/** Work for the thread; bytes are handed over. */
export type ThreadWork =
  | { readonly kind: "body"; readonly parts: readonly Uint8Array[]; readonly form: BodyForm }
  | { readonly kind: "json"; readonly parts: readonly Uint8Array[]; readonly form: JsonTextForm }
  | { readonly kind: "pass"; readonly payload: StoredPayload }
  | { readonly kind: "result"; readonly typeName: ProtoTypeName; readonly bytes: Uint8Array }
  | {
      readonly kind: "texts";
      /** Of the tokenizer. */
      readonly folder: string;
      readonly texts: readonly string[];
      readonly addSpecialTokens: boolean;
    }
  | { readonly kind: "grammar"; readonly shape: AnswerShape }
  | { readonly kind: "chat"; readonly folder: string; readonly chat: ChatText };

/** Work with its number. */
export interface ThreadOrder {
  readonly id: number;
  readonly work: ThreadWork;
}

/** What the thread answers. */
export type ThreadAnswer = { readonly id: number } & (
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "refused"; readonly status: number; readonly message: string }
  | {
      readonly kind: "undecodable";
      readonly message: string;
      readonly place: RequestPlace | undefined;
    }
  | { readonly kind: "damaged"; readonly file: string; readonly problem: string }
  | { readonly kind: "broken"; readonly error: string }
);
