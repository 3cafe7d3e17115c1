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
  type APIConnectionErrorOptions,
  type APIErrorOptions,
  type APIStatusErrorOptions,
  type APITimeoutErrorOptions,
  type Attempt,
  type FailedRequest,
} from "./api-error.js";
export { ArgumentError } from "./argument-error.js";
export { CancelledError } from "./cancelled-error.js";
export { CredentialError } from "./credential-error.js";
export { DependencyError } from "./dependency-error.js";
export { PartialCallError } from "./partial-call-error.js";
export { RequestExpiredError, RequestFailedError, ResultError } from "./request-failed-error.js";
export {
  SideThreadDiedError,
  SideThreadError,
  SideThreadMessageError,
  SideThreadStartError,
} from "./side-thread-error.js";
export { isUserError, TinkerError, type TinkerErrorOptions } from "./tinker-error.js";
export { TrainingOrderError } from "./training-order-error.js";
export { WireError, type WireDirection } from "./wire-error.js";
