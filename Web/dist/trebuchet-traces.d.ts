import type { CallTracer } from "./trebuchet.js";
/** A completed call, as observed by its caller. */
export interface CallSpan {
    /** The method, for example `addTodo(title:)`. */
    readonly name: string;
    /** The name of the actor. */
    readonly actor: string;
    /** The `traceparent` of the call itself, as sent. */
    readonly traceparent: string;
    /** The `traceparent` of the parent; undefined if the call began the trace. */
    readonly parent?: string | undefined;
    /** The `traceparent` of the server's span, from the response. Undefined if the server does not trace, and for a recorded response. */
    readonly answered?: string | undefined;
    /** The start time, in milliseconds as from `Date.now()`. */
    readonly began: number;
    readonly ended: number;
    /** The code of the error that ended the call. */
    readonly error?: string | undefined;
}
export interface TraceOptions {
    /**
     * Returns the `traceparent` of the parent of calls, for example the current span of another library. It is called for each call; a
     * `traceparent` in the call's options has precedence.
     */
    current?: () => string | null | undefined;
    /** The sampling ratio for calls without a parent trace, from 0 (none) to 1 (all). Default 0. */
    sampling?: number;
    /**
     * Receives the span of each call in a sampled trace, for a collector. Without it the client creates no spans: the server's spans are
     * children of `current`.
     */
    spanEnded?: (span: CallSpan) => void;
}
/** Returns the `traceparent` of a new trace, for several calls in one trace. */
export declare const newTrace: (isSampled?: boolean) => string;
/**
 * Returns a tracer that makes calls parts of traces according to the W3C's Trace Context: `connect(url, { traces: traces({ sampling: 0.01
 * }) })`.
 */
export declare function traces({ current, sampling, spanEnded }?: TraceOptions): CallTracer;
