import { APIConnectionError } from "../errors/api-error.js";
import { describeRequest, type HttpRequest, type HttpResponse } from "./message.js";

const fullBudget = 16;

/** A 400 without a body (or without a length) comes from a proxy, not from the API. */
export function isEmptyBadRequest({ status, headers }: HttpResponse): boolean {
  const length = headers["content-length"];
  return status === 400 && (length === undefined || length === "0");
}

/**
 * Treats an empty 400 as a broken connection, which every caller retries, instead of as a mistake of
 * the caller. A pool has a budget for this: an event costs one, a request without error earns one
 * back; with the budget gone the 400 is what it says.
 */
export function emptyBadRequestAsConnectionError(): (
  response: HttpResponse,
  request: HttpRequest,
) => HttpResponse {
  const budgets = new Map<string, number>();
  return (response, request) => {
    const { pool } = request;
    // What is stored elsewhere is not behind the proxy that this is about.
    if (pool === "storage") return response;
    const budget = budgets.get(pool) ?? fullBudget;
    if (!isEmptyBadRequest(response)) {
      if (budget < fullBudget && response.status < 300) budgets.set(pool, budget + 1);
      return response;
    }
    if (budget === 0) return response;
    budgets.set(pool, budget - 1);
    throw new APIConnectionError(
      "Connection error: a proxy answered 400 without a body; a new connection will be used.",
      { request: describeRequest(request), wasSent: false },
    );
  };
}
