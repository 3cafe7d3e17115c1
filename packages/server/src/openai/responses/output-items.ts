import { randomBytes } from "node:crypto";
import type { ChatDelta } from "../answer/chat-choice.js";
import type { JsonObject } from "../request/fields.js";

/** Sends an event of a response. */
export type SendItemEvent = (type: string, fields: JsonObject) => void;

interface OpenItem {
  readonly kind: "reasoning" | "content" | "call";
  readonly id: string;
  readonly index: number;
  readonly callId: string;
  readonly name: string;
  /** The index of the call, for calls. */
  readonly call: number;
  text: string;
}

/** Turns the deltas of an answer into the items of a response, with their events. */
export class OutputItems {
  readonly #send: SendItemEvent;
  readonly #done: JsonObject[] = [];
  #open: OpenItem | null = null;

  constructor(send: SendItemEvent) {
    this.#send = send;
  }

  /** Complete items. */
  get items(): readonly JsonObject[] {
    return this.#done;
  }

  push(delta: ChatDelta): void {
    if (delta.kind !== "call") {
      const open = this.#open?.kind === delta.kind ? this.#open : this.#begin(delta.kind);
      this.#text(open, delta.text);
      return;
    }
    const { index, id, function: called } = delta.call;
    const isSame = this.#open?.kind === "call" && this.#open.call === index;
    const open =
      isSame && this.#open ? this.#open : this.#begin("call", id ?? "", called.name ?? "", index);
    if (called.arguments !== "") this.#text(open, called.arguments);
  }

  /** Ends the current item. */
  end(status: "completed" | "incomplete"): void {
    const open = this.#open;
    if (open === null) return;
    this.#open = null;
    const place = { item_id: open.id, output_index: open.index };
    const item = itemOf(open, status);
    switch (open.kind) {
      case "content":
        this.#send("output_text.done", {
          ...place,
          content_index: 0,
          text: open.text,
          logprobs: [],
        });
        this.#send("content_part.done", { ...place, content_index: 0, part: textPart(open.text) });
        break;
      case "reasoning":
        this.#send("reasoning_text.done", { ...place, content_index: 0, text: open.text });
        this.#send("content_part.done", { ...place, content_index: 0, part: thought(open.text) });
        break;
      case "call":
        this.#send("function_call_arguments.done", {
          ...place,
          name: open.name,
          arguments: open.text,
        });
        break;
    }
    this.#send("output_item.done", { output_index: open.index, item });
    this.#done.push(item);
  }

  #begin(kind: OpenItem["kind"], callId = "", name = "", call = 0): OpenItem {
    this.end("completed");
    const prefix = { content: "msg", reasoning: "rs", call: "fc" }[kind];
    const id = `${prefix}_${randomBytes(16).toString("hex")}`;
    const open = { kind, id, index: this.#done.length, callId, name, call, text: "" };
    this.#open = open;
    const started = itemOf(open, "in_progress");
    const item = kind === "call" ? started : { ...started, content: [] };
    this.#send("output_item.added", { output_index: open.index, item });
    if (kind !== "call") {
      const place = { item_id: id, output_index: open.index, content_index: 0 };
      const part = kind === "content" ? textPart("") : thought("");
      this.#send("content_part.added", { ...place, part });
    }
    return open;
  }

  #text(open: OpenItem, delta: string): void {
    open.text += delta;
    const place = { item_id: open.id, output_index: open.index };
    if (open.kind === "call") this.#send("function_call_arguments.delta", { ...place, delta });
    else if (open.kind === "content") {
      this.#send("output_text.delta", { ...place, content_index: 0, delta, logprobs: [] });
    } else this.#send("reasoning_text.delta", { ...place, content_index: 0, delta });
  }
}

function itemOf(open: OpenItem, status: string): JsonObject {
  const { id, text } = open;
  switch (open.kind) {
    case "reasoning":
      return { id, type: "reasoning", summary: [], content: [thought(text)] };
    case "content":
      return { id, type: "message", status, role: "assistant", content: [textPart(text)] };
    case "call":
      return {
        id,
        type: "function_call",
        status,
        call_id: open.callId,
        name: open.name,
        arguments: text,
      };
  }
}

function thought(text: string): JsonObject {
  return { type: "reasoning_text", text };
}

function textPart(text: string): JsonObject {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}
