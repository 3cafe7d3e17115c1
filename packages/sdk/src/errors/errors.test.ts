import { describe, expect, it } from "vitest";
import { APIConnectionError, APITimeoutError, statusError } from "./api-error.js";
import {
  ArgumentError,
  ConflictError,
  InternalServerError,
  isUserError,
  RequestExpiredError,
  RequestFailedError,
  ResultError,
  TinkerError,
} from "./index.js";

describe("status errors", () => {
  it.each([
    [400, "BadRequestError", false, true],
    [401, "AuthenticationError", false, true],
    [402, "BillingError", false, true],
    [403, "PermissionDeniedError", false, true],
    [404, "NotFoundError", false, true],
    [408, "APIStatusError", true, false],
    [409, "ConflictError", true, true],
    [410, "APIStatusError", false, true],
    [422, "UnprocessableEntityError", false, true],
    [429, "RateLimitError", true, true],
    [302, "APIStatusError", false, false],
    [500, "InternalServerError", true, false],
    [503, "InternalServerError", true, false],
  ])("%i is %s", (status, name, isRetryable, isUser) => {
    const error = statusError(status);
    expect(error).toMatchObject({ status, name, code: `http_${status}` });
    expect(error.isRetryable).toBe(isRetryable);
    expect(error.isUserError).toBe(isUser);
  });

  it("say what the body says", () => {
    expect(statusError(409, { body: { error: "taken" } }).message).toBe("Error code: 409 - taken");
    expect(statusError(409, { body: "taken" }).message).toBe("taken");
    expect(statusError(409).message).toBe("Error code: 409");
    expect(statusError(409)).toBeInstanceOf(ConflictError);
    expect(statusError(599)).toBeInstanceOf(InternalServerError);
  });
});

describe("the category of an error", () => {
  it("is found along the chain of causes, also when the chain is a circle", () => {
    const user = new RequestFailedError("bad", { requestId: "r", category: "user" });
    expect(isUserError(new ResultError("r", "x", { cause: new Error("y", { cause: user }) }))).toBe(
      true,
    );
    const circle = new Error("a");
    circle.cause = new Error("b", { cause: circle });
    expect(isUserError(circle)).toBe(false);
  });

  it("is the server's for server failures and lost connections", () => {
    const options = { requestId: "r", category: "server" } as const;
    expect(new RequestFailedError("x", options).isUserError).toBe(false);
    expect(new APIConnectionError().isUserError).toBe(false);
    expect(new ArgumentError("rank", "must be 1").isUserError).toBe(true);
  });
});

it("every error is a TinkerError with a code and a retry flag", () => {
  expect(new APITimeoutError()).toMatchObject({ code: "timeout", isRetryable: true });
  expect(new RequestExpiredError("r")).toMatchObject({
    code: "request_expired",
    isRetryable: true,
  });
  expect(new ArgumentError("a", "b")).toBeInstanceOf(TinkerError);
  expect(new TinkerError("x")).toMatchObject({ code: "tinker_error", isRetryable: false });
});
