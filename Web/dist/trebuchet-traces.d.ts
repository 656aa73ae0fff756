import type { CallTracer } from "./trebuchet.js";
/** A call as its caller saw it, which has ended. */
export interface CallSpan {
    /** The method, as `addTodo(title:)`. */
    readonly name: string;
    /** The name of the actor. */
    readonly actor: string;
    /** Of the call itself: what was sent. */
    readonly traceparent: string;
    /** Of what it is a part of; undefined where the call began the trace. */
    readonly parent?: string | undefined;
    /** What the answer said: of the span at the server. Undefined where that does not trace, and for a kept answer. */
    readonly answered?: string | undefined;
    /** In milliseconds, as `Date.now()` counts them. */
    readonly began: number;
    readonly ended: number;
    /** The code of the error that it ended with. */
    readonly error?: string | undefined;
}
export interface TraceOptions {
    /** The `traceparent` of what calls are part of: asked with each call, as the span of now of another library. One that an option of the call gives goes before. */
    current?: () => string | null | undefined;
    /** Of calls that are part of no trace, how many begin one that is kept: from 0, none, to 1, all. Default 0. */
    sampling?: number;
    /** Told the span of each call whose trace is kept, for a collector. Without it there is none: the server's are children of what `current` says. */
    spanEnded?: (span: CallSpan) => void;
}
/** The `traceparent` of a trace that begins, for what is to be one with several calls. */
export declare const newTrace: (isKept?: boolean) => string;
/** Has calls be parts of traces, as the W3C's Trace Context says: `connect(url, { traces: traces({ sampling: 0.01 }) })`. */
export declare function traces({ current, sampling, spanEnded }?: TraceOptions): CallTracer;
