export { connect } from "./client.js"
export { actorType } from "./actors.js"
export { TrebuchetError } from "./errors.js"
export { array, bigint, data, date, decimal, lazy, map, nullable, record, struct, union } from "./codecs.js"
export type { ErrorCode } from "./errors.js"
export type {
    Actor, ActorInfo, ActorShape, ActorType, Call, CallError, CallOptions, CallTracer, Client, Codec, ConnectOptions, Events, Filter, JSONCoder,
    MethodInfo, Part, Result, State, Status, Store, StreamInfo, StreamStatus, TracedCall, UntypedActor, UntypedCallOptions,
} from "./types.js"

// These exports are for the other bundles, which would otherwise have copies; they are not in this bundle's types.
export { equal, isObject, unencodable } from "./json.js"
export { capture, isSuspension } from "./environment.js"
export { Listeners, report, Value } from "./store.js"
