// The services import these symbols from trebuchet.js, which every app loads anyway.
export { capture, connect, equal, isObject, isSuspension, Listeners, unencodable, report, TrebuchetError, Value } from "../index.js"
export type { Client, JSONCoder, State } from "../index.js"
