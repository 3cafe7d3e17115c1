import { statusError, type APIStatusError } from "../errors/api-error.js";
import { parseJson } from "../wire/json-text.js";
import { describeRequest, type HttpRequest, type HttpResponse } from "./message.js";

/** The error that a status other than 2xx stands for, with what the body says. */
export function toStatusError(response: HttpResponse, request: HttpRequest): APIStatusError {
  return statusError(response.status, {
    body: readBody(response.body),
    headers: response.headers,
    request: describeRequest(request),
  });
}

/** Decoded JSON, else text, else null. */
function readBody(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) return null;
  const text = new TextDecoder().decode(bytes);
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
