export { passAtK, passAtKValues } from "./pass-at-k.js";
