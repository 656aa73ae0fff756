// What the services take of trebuchet.js, which their bundle imports: an app has it anyway.
export { capture, connect, equal, isObject, isSuspension, Listeners, misfit, report, TrebuchetError, Value } from "../index.js"
export type { Client, JSONCoder, State } from "../index.js"
