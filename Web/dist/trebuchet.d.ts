// The types of trebuchet.js.
/**
 * Connects to a server, `ws://localhost:8080` for example, or `/` for the one that the page came from. Returns at once, and goes on
 * trying until `close()`. Of a service with several servers, as the nodes of a cluster are, it takes a list: it begins with any of them, and
 * goes to the next when a connection is lost, cannot be made, or the server sends its clients away.
 */
export declare function connect(url: string | URL | readonly (string | URL)[], options?: ConnectOptions): Client;
/** Makes a type of actors of what the generator has found out about it. */
export declare function actorType<Shape extends ActorShape>(info: ActorInfo<Shape>): ActorType<Shape>;
/** What can be subscribed to, in the form of React's `useSyncExternalStore`: the snapshot is the same reference until it changes. */
export interface Store<T> {
    /** Calls the listener after each change, not at once. A listener that throws disturbs nobody. Gives what ends it. */
    subscribe(listener: () => void): () => void;
    getSnapshot(): T;
    /** The value before anything has come, the same at a server and in a page: React's `getServerSnapshot`. Without this member it is undefined. */
    getServerSnapshot?(): T;
}
/** How a client stands with its server. */
export interface Status {
    /**
     * - `connecting`: no connection has been there yet, one is being made.
     * - `live`: calls and streams go over the connection.
     * - `stale`: the connection is lost and made again; states show what came last.
     * - `offline`: the system says there is no network, or the client was closed.
     * - `refused`: the server does not let this client in; see `error`.
     */
    readonly phase: "connecting" | "live" | "stale" | "offline" | "refused";
    /** When the phase began, in milliseconds as `Date.now()` counts them. */
    readonly since: number;
    /** Why there is no connection, or why the last one ended. */
    readonly error?: TrebuchetError | undefined;
    /** Attempts in a row that have come to nothing. */
    readonly failures: number;
    /** When the next attempt begins, in milliseconds as `Date.now()` counts them. */
    readonly retryAt?: number | undefined;
}
/** How a state or events stand. */
export interface StreamStatus {
    /**
     * - `waiting`: nobody subscribes, or nothing has come yet.
     * - `live`: the value is that of now.
     * - `stale`: the value is the last one that came; the connection is being made again.
     * - `failed`: the server has ended it; see `error`. Who subscribes then, and the next connection, ask again.
     */
    readonly phase: "waiting" | "live" | "stale" | "failed";
    readonly error?: TrebuchetError;
}
/** What reads and writes messages instead of `JSON`. */
export interface JSONCoder {
    parse(text: string): unknown;
    stringify(value: unknown): string;
}
export interface ConnectOptions {
    /** The bearer token, or what gives one: it is asked before each connection. Kept in memory alone. */
    token?: string | null | (() => string | null | undefined | Promise<string | null | undefined>);
    /** The class of sockets where there is none built in, as in Node 20. */
    WebSocket?: unknown;
    /** Milliseconds until a call that is not answered ends with `timeout`, waiting for a connection included. Default 30,000; 0 for never. */
    timeout?: number;
    /** Calls that wait for a connection at most; one more ends with `rateLimited`. Default 1,000. */
    waitingCalls?: number;
    /** Events that wait for a slow reader of an async iteration at most; one more ends it with `overflow`. Default 1,000. */
    eventBuffer?: number;
    /** The longest wait behind the first failure, in milliseconds; it doubles with each. Default 200. */
    initialDelay?: number;
    /** The longest wait behind any number of failures, in milliseconds. Default 10,000. */
    maximumDelay?: number;
    /** `exact` of trebuchet-exact.js, for numbers that JavaScript's doubles cannot hold. Default `JSON`. */
    json?: JSONCoder;
    /** `traces(…)` of trebuchet-traces.js, by which calls are parts of traces. Default none: then one that an option of the call gives is sent as it is. */
    traces?: CallTracer;
}
/** Says what a call is part of, when it is made; nothing for no trace. It throws nothing. `ended` is told what the answer said of the span at the server. */
export declare type CallTracer = (target: string, actorID: string, options: CallOptions) => TracedCall | undefined;
export interface TracedCall {
    readonly traceparent: string;
    ended(error: TrebuchetError | undefined, answered: string | undefined): void;
}
export interface CallOptions {
    /** Ends the call with `cancelled`, and cancels it at the server. */
    signal?: AbortSignal;
    /** Milliseconds until the call ends with `timeout`, here and at the server. Default that of `connect`. */
    timeout?: number;
    /** What it is part of, as the W3C's `traceparent`. */
    traceparent?: string;
}
/** Options of an untyped call. */
export interface UntypedCallOptions extends CallOptions {
    /** The method is marked `@Idempotent`: the call is repeated when the connection breaks before its answer. */
    idempotent?: boolean;
    /** Names of types, as `Swift.Int`, for a generic method. */
    genericSubstitutions?: string[];
}
/** Why a call failed; `data` is what the method threw. */
export interface CallError<E = unknown> extends TrebuchetError {
    readonly data?: E;
}
export declare type Result<T, E = never> = {
    ok: true;
    value: T;
} | {
    ok: false;
    error: CallError<E>;
};
/** An answer that is under way: a promise that rejects with a `TrebuchetError`. */
export interface Call<T, E = never> extends Promise<T> {
    /** The same as a value; it never rejects. */
    result(): Promise<Result<T, E>>;
    /** Holds the type of what the method throws; never there. */
    readonly __thrown?: E;
}
/** What the server is asked to send of a state. */
export interface Filter {
    /** Only this part of the state (RFC 6901), sent when it changed; null while there is none. */
    path?: string;
    /** Not when the value equals the last one sent. */
    distinct?: boolean;
    /** At most one update per interval, 1 to 3,600,000; the last one is never lost. */
    minIntervalMilliseconds?: number;
    /** A condition of the whole state. */
    where?: {
        path: string;
        op: "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "exists" | "nonEmpty";
        value?: unknown;
    };
}
/** The type of a part of a value. */
export declare type Part<T, Path extends string> = Path extends "" ? T : Path extends `/${infer Name}/${infer Rest}` ? Part<Member<T, Name>, `/${Rest}`> : Path extends `/${infer Name}` ? Member<T, Name> : unknown;
declare type Member<T, Name extends string> = 0 extends 1 & T ? any : T extends null | undefined ? undefined : T extends readonly (infer Element)[] ? Element | undefined : Name extends keyof T ? T[Name] : T extends Readonly<Record<string, infer Value>> ? Value | undefined : unknown;
/**
 * A state of an actor. The server is asked for it while anybody subscribes or iterates, once for all who do; the value stays when the
 * connection breaks. Values are shared and never changed in place: what is the same in two of them is the same object.
 */
export interface State<T> extends Store<T | undefined>, AsyncIterable<T> {
    /** The newest value; undefined until one has come. */
    getSnapshot(): T | undefined;
    readonly status: Store<StreamStatus>;
    /** A part of it (RFC 6901), from the same stream: its subscribers are called when the part changes. */
    at<Path extends string>(path: Path): State<Part<T, Path>>;
    /** What the server is to send of it, over a stream of its own. */
    filter<Path extends string = "">(filter: Filter & {
        path?: Path;
    }): State<Part<T, Path>>;
}
/**
 * Events of an actor, from the moment at which one begins to listen: all of them in order, also across connections, or an end with the
 * error `overflow`.
 */
export interface Events<T> extends AsyncIterable<T> {
    /** Calls the listener for each event, and `failed` once when there will be no more. Gives what ends it. */
    subscribe(listener: (event: T) => void, failed?: (error: TrebuchetError) => void): () => void;
    readonly status: Store<StreamStatus>;
}
/** Converts between JSON and what TypeScript reads. */
export interface Codec<T = any> {
    read(json: any): T;
    write(value: T): unknown;
    /** The codec of a member or an element, where that needs one. */
    part?(name: string): Codec | undefined;
}
export interface MethodInfo {
    /** `addTodo(title:)` */
    readonly target: string;
    readonly arguments?: readonly (Codec | undefined)[];
    readonly result?: Codec;
    /** Codecs of errors that it throws, by the name of their type. */
    readonly errors?: Readonly<Record<string, Codec | undefined>>;
    readonly idempotent?: boolean;
}
export interface StreamInfo {
    /** `observeState` */
    readonly target: string;
    readonly value?: Codec;
}
/** What an actor has, as types. */
export interface ActorShape {
    methods?: object;
    states?: object;
    events?: object;
}
export interface ActorInfo<Shape extends ActorShape> {
    /** The Swift type's name. */
    readonly name: string;
    readonly methods?: {
        readonly [Name in keyof Shape["methods"]]: MethodInfo;
    };
    readonly states?: {
        readonly [Name in keyof Shape["states"]]: StreamInfo;
    };
    readonly events?: {
        readonly [Name in keyof Shape["events"]]: StreamInfo;
    };
}
/** A type of actors, which the generator writes. */
export interface ActorType<Shape extends ActorShape = ActorShape> extends ActorInfo<Shape> {
    /** Holds the types; never there. */
    readonly __shape?: Shape;
}
/** An actor of a type: its methods, states and events. */
export declare type Actor<Shape extends ActorShape> = Shape["methods"] & {
    readonly [Name in keyof Shape["states"]]: State<Shape["states"][Name]>;
} & {
    readonly [Name in keyof Shape["events"]]: Events<Shape["events"][Name]>;
};
/** An actor whose type is not known: targets are named as the server knows them, and values are JSON. */
export interface UntypedActor {
    call<T = any>(target: string, args?: readonly unknown[], options?: UntypedCallOptions): Call<T, any>;
    state<T = any>(target?: string): State<T>;
    events<T = any>(target: string): Events<T>;
}
export interface Client {
    readonly status: Store<Status>;
    /** An actor by its name, its type not known. Costs nothing until it is used. */
    actor(id: string): UntypedActor;
    /** An actor of a type by its name. */
    actor<Shape extends ActorShape>(type: ActorType<Shape>, id: string): Actor<Shape>;
    /** Tries to connect now, also when the server has refused; with a connection it makes another one, as after signing in. */
    reconnect(): void;
    /** Ends the connection, all calls with `unavailable` and all streams, for good. */
    close(): void;
}
/** The outcome of a call or a stream. Servers may know more codes than these. */
export declare type ErrorCode = "actorNotFound" | "methodNotFound" | "invalidArguments" | "unauthenticated" | "unauthorized" | "rateLimited" | "timeout" | "cancelled" | "unavailable" | "unknownOutcome" | "overflow" | "application" | "internal" | (string & {});
export declare class TrebuchetError extends Error {
    /** What kind of failure it is; `unknownOutcome` says that a call was sent and may have run. */
    readonly code: ErrorCode;
    /** Of `application`: the Swift type of the error that the method threw. */
    readonly type?: string | undefined;
    /** Of `application`: that error. */
    readonly data?: unknown;
    /** Milliseconds before which another call would be refused, too. */
    readonly retryAfter?: number | undefined;
    constructor(code: ErrorCode, message: string, type?: string, data?: unknown, retryAfter?: number);
}
/** Swift's `Date`: ISO 8601 in UTC with milliseconds. */
export declare const date: Codec<Date>;
/** Swift's `Data`: base64. */
export declare const data: Codec<Uint8Array>;
/** A 64-bit integer. Beyond 2^53 it needs the exact coder. */
export declare const bigint: Codec<bigint>;
/** Swift's `Decimal`, as text. With more digits than a double holds it needs the exact coder. */
export declare const decimal: Codec<any>;
/** An array whose elements need a codec. */
export declare function array<T = any>(element: Codec<T>): Codec<T[]>;
/** Swift's `[String: T]` whose values need a codec. */
export declare function record<T = any>(element: Codec<T>): Codec<Record<string, T>>;
/** A dictionary whose keys are no strings: in JSON an array of a key, its value, the next key, and so on. */
export declare function map<K = any, V = any>(key?: Codec<K>, value?: Codec<V>): Codec<Map<K, V>>;
/** An object some of whose members need codecs; others, and those that are not there, are left as they are. */
export declare function struct<T = any>(members: {
    readonly [name: string]: Codec;
}): Codec<T>;
/** An enum with values: an object with one member, the case, which may need a codec. An unknown case is left as it is. */
export declare const union: <T = any>(cases: {
    readonly [name: string]: Codec;
}) => Codec<T>;
/** What may be null. */
export declare function nullable<T = any>(codec: Codec<T>): Codec<T | null>;
/** The codec of a type that contains itself. */
export declare function lazy<T = any>(codec: () => Codec<T>): Codec<T>;
