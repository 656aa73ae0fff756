// A bundle of its own: pages that write nothing do not load it.
export { keep, send } from "./sent.js"
