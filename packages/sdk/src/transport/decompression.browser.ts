import type { Inspect } from "./message.js";

/** Browsers offer what they can unpack by themselves. */
export const acceptedEncodings = "gzip, deflate, br";

/** Leaves answers as they are: `fetch` has unpacked them. Takes the place of decompression.ts. */
export const decompress: Inspect = (response) => response;
