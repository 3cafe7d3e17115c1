// What a few requests need beyond sending; loaded with the first of them.
export { archiveUrl } from "./archive-url.js";
export { billingWindow } from "./billing-window.js";
export { exportTrace } from "./export-trace.js";
export { identityOf } from "./identity.js";
export { postLogs } from "./post-logs.js";
