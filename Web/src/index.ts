export { connect } from "./client.js"
export { actorType } from "./actors.js"
export { TrebuchetError } from "./errors.js"
export { array, bigint, data, date, decimal, lazy, map, nullable, record, struct, union } from "./codecs.js"
export type { ErrorCode } from "./errors.js"
export type {
    Actor, ActorInfo, ActorShape, ActorType, Call, CallError, CallOptions, Client, Codec, ConnectOptions, Events, Filter, JSONCoder,
    MethodInfo, Part, Result, State, Status, Store, StreamInfo, StreamStatus, UntypedActor, UntypedCallOptions,
} from "./types.js"
