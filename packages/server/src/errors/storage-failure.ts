import { codeOf } from "./code-of.js";

const storageCodes = /^(SQLITE_(FULL|IOERR|BUSY|READONLY)|ENOSPC|EDQUOT|EFBIG|EIO|EROFS|EMFILE)/;

/** Whether the data directory could not be written to; trying again later may work. */
export function isStorageFailure(error: unknown): error is Error {
  return storageCodes.test(codeOf(error) ?? "");
}

/** Whether a file is not there. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT";
}
