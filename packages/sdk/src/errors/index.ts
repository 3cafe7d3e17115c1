export {
  APIConnectionError,
  APIError,
  APIResponseValidationError,
  APIStatusError,
  APITimeoutError,
  AuthenticationError,
  BadRequestError,
  BillingError,
  ConflictError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  UnprocessableEntityError,
  type APIConnectionErrorOptions,
  type APIErrorOptions,
  type APIStatusErrorOptions,
  type APITimeoutErrorOptions,
  type Attempt,
  type FailedRequest,
} from "./api-error.js";
export { ArgumentError } from "./argument-error.js";
export { CancelledError } from "./tinker-error.js";
export { checkOptions } from "./check-options.js";
export { CredentialError } from "./tinker-error.js";
export { DependencyError } from "./tinker-error.js";
export { PartialCallError } from "./partial-call-error.js";
export { RequestExpiredError, RequestFailedError, ResultError } from "./request-failed-error.js";
export {
  SideThreadDiedError,
  SideThreadError,
  SideThreadMessageError,
  SideThreadStartError,
} from "./side-thread-error.js";
export { isUserError, TinkerError, type TinkerErrorOptions } from "./tinker-error.js";
export { TrainingOrderError } from "./tinker-error.js";
export { WireError, type WireDirection } from "./wire-error.js";
