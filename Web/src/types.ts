import type { TrebuchetError } from "./errors.js"

/**
 * A source of values with subscribers, in the form of React's `useSyncExternalStore`: the snapshot is the same reference until it changes.
 */
export interface Store<T> {
    /**
     * Calls the listener after each change, and not at the start. An error of a listener does not affect the others. Returns a function
     * that ends the subscription.
     */
    subscribe(listener: () => void): () => void
    getSnapshot(): T
    /**
     * Returns the value before the first one has arrived, which is the same at a server and in a page: React's `getServerSnapshot`. Without
     * this member it is undefined.
     */
    getServerSnapshot?(): T
}

/** The connection status of a client. */
export interface Status {
    /**
     * The phase:
     * - `connecting`: the first connection is being made.
     * - `live`: calls and streams use the connection.
     * - `stale`: the connection is lost and is being made again; states show their last values.
     * - `offline`: the system reports that there is no network, or the client was closed.
     * - `refused`: the server does not admit this client; see `error`.
     */
    readonly phase: "connecting" | "live" | "stale" | "offline" | "refused"
    /** The start time of the phase, in milliseconds as from `Date.now()`. */
    readonly since: number
    /** The reason why there is no connection, or why the last one ended. */
    readonly error?: TrebuchetError | undefined
    /** The number of consecutive failed attempts. */
    readonly failures: number
    /** The time of the next attempt, in milliseconds as from `Date.now()`. */
    readonly retryAt?: number | undefined
}

/** The status of a state or of events. */
export interface StreamStatus {
    /**
     * The phase:
     * - `waiting`: there are no subscribers, or no value has arrived yet.
     * - `live`: the value is current.
     * - `stale`: the value is the last one that arrived; the connection is being made again.
     * - `failed`: the server has ended the stream; see `error`. A new subscriber or the next connection requests it again.
     */
    readonly phase: "waiting" | "live" | "stale" | "failed"
    readonly error?: TrebuchetError
}

/** A coder that reads and writes messages in place of `JSON`. */
export interface JSONCoder {
    parse(text: string): unknown
    stringify(value: unknown): string
}

export interface ConnectOptions {
    /** The bearer token, or a function that returns one, which is called before each connection. It is kept in memory only. */
    token?: string | null | (() => string | null | undefined | Promise<string | null | undefined>)
    /** The WebSocket class for platforms without a built-in one, such as Node 20. */
    WebSocket?: unknown
    /**
     * The milliseconds after which a call without a response ends with `timeout`, including the wait for a connection. Default 30,000; 0
     * for never.
     */
    timeout?: number
    /** The maximum number of calls that wait for a connection; further calls end with `rateLimited`. Default 1,000. */
    waitingCalls?: number
    /** The maximum number of events that wait for a slow reader of an async iteration; one more ends it with `overflow`. Default 1,000. */
    eventBuffer?: number
    /** The maximum delay after the first failure, in milliseconds; it doubles with each failure. Default 200. */
    initialDelay?: number
    /** The maximum delay after any number of failures, in milliseconds. Default 10,000. */
    maximumDelay?: number
    /** The coder `exact` of trebuchet-exact.js, for numbers that JavaScript's doubles cannot hold. Default `JSON`. */
    json?: JSONCoder
    /**
     * The tracer `traces(…)` of trebuchet-traces.js, which makes calls parts of traces. Default none: a `traceparent` in a call's options
     * is then sent unchanged.
     */
    traces?: CallTracer
    /**
     * Returns the metadata of a call or of the request of a stream, such as a request id; undefined for none. It is called for each of them,
     * and does not throw. The `metadata` of a call's options is added, and replaces equal names. Default none.
     */
    metadata?: (target: string, actorID: string) => Readonly<Record<string, string>> | undefined
}

/**
 * Returns the trace context of a call when the call is made; undefined for no trace. It does not throw. `ended` receives the `traceparent`
 * of the server's span, from the response.
 */
export type CallTracer = (target: string, actorID: string, options: CallOptions) => TracedCall | undefined

export interface TracedCall {
    readonly traceparent: string
    ended(error: TrebuchetError | undefined, answered: string | undefined): void
}

export interface CallOptions {
    /** Ends the call with `cancelled`, and cancels it at the server. */
    signal?: AbortSignal
    /** The milliseconds after which the call ends with `timeout`, here and at the server. Default: the timeout of `connect`. */
    timeout?: number
    /** The parent of the call, as the W3C's `traceparent`. */
    traceparent?: string
    /**
     * Text fields for interceptors of the server and for the method: at most 16, with names of `a-z`, `0-9` and `-`, and 4,096 bytes as
     * JSON. Default none.
     */
    metadata?: Readonly<Record<string, string>>
}

/** Options of an untyped call. */
export interface UntypedCallOptions extends CallOptions {
    /** True if the method is marked `@Idempotent`: the call is repeated when the connection is lost before its response. */
    idempotent?: boolean
    /** The names of types, such as `Swift.Int`, for a generic method. */
    genericSubstitutions?: string[]
}

/** The error of a call; `data` is the error that the method threw. */
export interface CallError<E = unknown> extends TrebuchetError {
    readonly data?: E
}

export type Result<T, E = never> = { ok: true; value: T } | { ok: false; error: CallError<E> }

/** A call in progress: a promise that rejects with a `TrebuchetError`. */
export interface Call<T, E = never> extends Promise<T> {
    /** Returns the outcome as a value; the promise never rejects. */
    result(): Promise<Result<T, E>>
    /** Holds the type of the errors that the method throws; never present. */
    readonly __thrown?: E
}

/** Options that restrict the values of a state that the server sends. */
export interface Filter {
    /** The part of the state (RFC 6901) to send when it changes; null while the part is absent. */
    path?: string
    /** True to skip values that equal the last one sent. */
    distinct?: boolean
    /** The minimum interval between updates, 1 to 3,600,000; the last update is never lost. */
    minIntervalMilliseconds?: number
    /** A condition on the whole state. */
    where?: {
        path: string
        op: "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "exists" | "nonEmpty"
        value?: unknown
    }
}

/** The type of a part of a value. */
export type Part<T, Path extends string> = Path extends ""
    ? T
    : Path extends `/${infer Name}/${infer Rest}`
    ? Part<Member<T, Name>, `/${Rest}`>
    : Path extends `/${infer Name}`
    ? Member<T, Name>
    : unknown

type Member<T, Name extends string> = 0 extends 1 & T
    ? any
    : T extends null | undefined
    ? undefined
    : T extends readonly (infer Element)[]
    ? Element | undefined
    : Name extends keyof T
    ? T[Name]
    : T extends Readonly<Record<string, infer Value>>
    ? Value | undefined
    : unknown

/**
 * A state of an actor. The client requests it once for all subscribers and iterations, while there are any. The value stays when the
 * connection is lost. Values are shared and never changed in place: equal parts of two values are the same object.
 */
export interface State<T> extends Store<T | undefined>, AsyncIterable<T> {
    /** Returns the newest value; undefined until one has arrived. */
    getSnapshot(): T | undefined
    readonly status: Store<StreamStatus>
    /** Returns a part of the state (RFC 6901), from the same stream. Its subscribers are called when the part changes. */
    at<Path extends string>(path: Path): State<Part<T, Path>>
    /** Returns a filtered state, over a separate stream. */
    filter<Path extends string = "">(filter: Filter & { path?: Path }): State<Part<T, Path>>
}

/**
 * The events of an actor, from the start of the subscription. All events are delivered in order, also across connections; otherwise the
 * subscription ends with the error `overflow`.
 */
export interface Events<T> extends AsyncIterable<T> {
    /** Calls the listener for each event, and `failed` once when there will be no more. Returns a function that ends the subscription. */
    subscribe(listener: (event: T) => void, failed?: (error: TrebuchetError) => void): () => void
    readonly status: Store<StreamStatus>
}

/** Converts between JSON and TypeScript values. */
export interface Codec<T = any> {
    read(json: any): T
    write(value: T): unknown
    /** Returns the codec of a member or an element, if that needs one. */
    part?(name: string): Codec | undefined
}

export interface MethodInfo {
    /** The target, for example `addTodo(title:)`. */
    readonly target: string
    readonly arguments?: readonly (Codec | undefined)[]
    readonly result?: Codec
    /** The codecs of the errors that the method throws, by type name. */
    readonly errors?: Readonly<Record<string, Codec | undefined>>
    readonly idempotent?: boolean
}

export interface StreamInfo {
    /** The target, for example `observeState`. */
    readonly target: string
    readonly value?: Codec
}

/** The members of an actor, as types. */
export interface ActorShape {
    methods?: object
    states?: object
    events?: object
}

export interface ActorInfo<Shape extends ActorShape> {
    /** The name of the Swift type. */
    readonly name: string
    readonly methods?: { readonly [Name in keyof Shape["methods"]]: MethodInfo }
    readonly states?: { readonly [Name in keyof Shape["states"]]: StreamInfo }
    readonly events?: { readonly [Name in keyof Shape["events"]]: StreamInfo }
}

/** A type of actors, which the generator writes. */
export interface ActorType<Shape extends ActorShape = ActorShape> extends ActorInfo<Shape> {
    /** Holds the types; never present. */
    readonly __shape?: Shape
}

/** An actor of a type: its methods, states and events. */
export type Actor<Shape extends ActorShape> = Shape["methods"] & {
    readonly [Name in keyof Shape["states"]]: State<Shape["states"][Name]>
} & { readonly [Name in keyof Shape["events"]]: Events<Shape["events"][Name]> }

/** An actor without type information: targets have the server's names, and values are JSON. */
export interface UntypedActor {
    call<T = any>(target: string, args?: readonly unknown[], options?: UntypedCallOptions): Call<T, any>
    state<T = any>(target?: string): State<T>
    events<T = any>(target: string): Events<T>
}

export interface Client {
    readonly status: Store<Status>
    /** Returns an untyped actor by its name. The actor uses no resources until its first use. */
    actor(id: string): UntypedActor
    /** Returns an actor of a type by its name. */
    actor<Shape extends ActorShape>(type: ActorType<Shape>, id: string): Actor<Shape>
    /** Tries to connect now, even if the server has refused. With a connection, it makes another one, for example after a sign-in. */
    reconnect(): void
    /** Ends the connection, all calls with `unavailable`, and all streams, permanently. */
    close(): void
}
