import { APIConnectionError } from "../errors/api-error.js";
import { describeRequest, type HttpResponse, type Send } from "./message.js";

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
export function withEmptyBadRequestAsConnectionError(send: Send): Send {
  const budgets = new Map<string, number>();
  return async (request) => {
    const response = await send(request);
    if (response.status >= 200 && response.status < 300) {
      const budget = budgets.get(request.pool);
      if (budget !== undefined) budgets.set(request.pool, Math.min(budget + 1, fullBudget));
      return response;
    }
    if (!isEmptyBadRequest(response)) return response;
    const budget = budgets.get(request.pool) ?? fullBudget;
    if (budget === 0) return response;
    budgets.set(request.pool, budget - 1);
    throw new APIConnectionError(
      "Connection error: a proxy answered 400 without a body; a new connection will be used.",
      { request: describeRequest(request), wasSent: false },
    );
  };
}
