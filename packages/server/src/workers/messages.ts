import type { ModelInput, ProtoTypeName, RequestPlace, WireInput, WireValue } from "tinker-ts/wire";
import type { StoredPayload } from "../store/content.js";
import type { AnswerShape } from "../structure/answer-grammar.js";
import type { ChatText } from "./chat-text.js";
import type { BodyForm, JsonForm } from "./decode-body.js";

/** A task of a worker; bytes are handed over, `folder` is that of a tokenizer. */
export type WorkerTask =
  | { readonly kind: "body"; readonly parts: readonly Uint8Array[]; readonly form: BodyForm }
  | { readonly kind: "json"; readonly parts: readonly Uint8Array[]; readonly form: JsonForm }
  | { readonly kind: "pass"; readonly payload: StoredPayload }
  | { readonly kind: "result"; readonly typeName: ProtoTypeName; readonly bytes: Uint8Array }
  | {
      readonly kind: "texts";
      readonly folder: string;
      readonly texts: readonly string[];
      readonly addSpecialTokens: boolean;
    }
  | { readonly kind: "grammar"; readonly shape: AnswerShape }
  | { readonly kind: "chat"; readonly folder: string; readonly chat: ChatText };

/** A task with its number. */
export interface WorkerRequest {
  readonly id: number;
  readonly task: WorkerTask;
}

/** What a worker answers. */
export type WorkerAnswer = { readonly id: number } & (
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "refused"; readonly status: number; readonly message: string }
  | { readonly kind: "invalid"; readonly message: string; readonly place: RequestPlace | undefined }
  | { readonly kind: "damaged"; readonly file: string; readonly problem: string }
  | { readonly kind: "broken"; readonly error: string }
);

/** A sample request with plain objects, as it crosses between threads. */
export type FlatSample = Omit<WireValue<"SampleRequest">, "prompt" | "targetPromptLogprobs"> & {
  readonly prompt: ModelInput["chunks"];
  readonly targetPromptLogprobs: WireInput<"TensorData"> | null;
};
