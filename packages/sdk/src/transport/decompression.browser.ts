import type { HttpResponse } from "./message.js";

/** Browsers offer what they can unpack by themselves. */
export const acceptedEncodings = "gzip, deflate, br";

/** Returns responses as they are: `fetch` has unpacked them. Takes the place of decompression.ts. */
export function decompress(response: HttpResponse): HttpResponse {
  return response;
}
