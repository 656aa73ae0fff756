import type { CallTracer } from "./types.js"

/** A completed call, as observed by its caller. */
export interface CallSpan {
    /** The method, for example `addTodo(title:)`. */
    readonly name: string
    /** The name of the actor. */
    readonly actor: string
    /** The `traceparent` of the call itself, as sent. */
    readonly traceparent: string
    /** The `traceparent` of the parent; undefined if the call began the trace. */
    readonly parent?: string | undefined
    /** The `traceparent` of the server's span, from the response. Undefined if the server does not trace, and for a recorded response. */
    readonly answered?: string | undefined
    /** The start time, in milliseconds as from `Date.now()`. */
    readonly began: number
    readonly ended: number
    /** The code of the error that ended the call. */
    readonly error?: string | undefined
}

export interface TraceOptions {
    /**
     * Returns the `traceparent` of the parent of calls, for example the current span of another library. It is called for each call; a
     * `traceparent` in the call's options has precedence.
     */
    current?: () => string | null | undefined
    /** The sampling ratio for calls without a parent trace, from 0 (none) to 1 (all). Default 0. */
    sampling?: number
    /**
     * Receives the span of each call in a sampled trace, for a collector. Without it the client creates no spans: the server's spans are
     * children of `current`.
     */
    spanEnded?: (span: CallSpan) => void
}

const grammar = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/

/** Returns the given number of random digits; the chance that all are 0 is negligible. */
const digits = (count: number): string =>
    Array.from(crypto.getRandomValues(new Uint8Array(count / 2)), (byte) => (byte + 256).toString(16).slice(1)).join("")

/** Returns the `traceparent` of a new trace, for several calls in one trace. */
export const newTrace = (isSampled = true): string => `00-${digits(32)}-${digits(16)}-0${Number(isSampled)}`

/** Calls a function of the program; its errors are reported and do not affect the call. */
function quietly<T>(body: () => T): T | undefined {
    try {
        return body()
    } catch (error) {
        const handle = (globalThis as any).reportError ?? console.error
        handle(error)
        return undefined
    }
}

/**
 * Returns a tracer that makes calls parts of traces according to the W3C's Trace Context: `connect(url, { traces: traces({ sampling: 0.01
 * }) })`.
 */
export function traces({ current, sampling = 0, spanEnded }: TraceOptions = {}): CallTracer {
    return (name, actor, options) => {
        const given = options.traceparent ?? (current && quietly(current))
        // An invalid traceparent is ignored.
        const parent = given && grammar.test(given) ? given : undefined
        if (!parent && Math.random() >= sampling) return undefined
        let traceparent = parent ?? newTrace()
        // The last digit is odd if the trace is sampled.
        if (!spanEnded || parseInt(traceparent.slice(-1), 16) % 2 === 0) return { traceparent, ended() {} }
        if (parent) traceparent = parent.slice(0, 36) + digits(16) + parent.slice(52)
        const began = Date.now()
        return {
            traceparent,
            ended: (error, answered) =>
                void quietly(() => spanEnded({ name, actor, traceparent, parent, answered, began, ended: Date.now(), error: error?.code })),
        }
    }
}
