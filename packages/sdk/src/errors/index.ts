export {
  APIConnectionError,
  APIError,
  APIResponseValidationError,
  APIStatusError,
  APITimeoutError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  UnprocessableEntityError,
  type APIErrorOptions,
  type APIStatusErrorOptions,
  type Attempt,
  type FailedRequest,
} from "./api-error.js";
export { ArgumentError } from "./argument-error.js";
export { CredentialError } from "./credential-error.js";
export { RequestExpiredError, RequestFailedError, ResultError } from "./request-failed-error.js";
export { isUserError, TinkerError, type TinkerErrorOptions } from "./tinker-error.js";
export { WireError, type WireDirection } from "./wire-error.js";
