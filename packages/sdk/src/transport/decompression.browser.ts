import type { Send } from "./message.js";

/** Browsers offer what they can unpack by themselves. */
export const acceptedEncodings = "gzip, deflate, br";

/** Leaves answers as they are: `fetch` has unpacked them. Takes the place of decompression.ts. */
export function withDecompression(send: Send): Send {
  return send;
}
