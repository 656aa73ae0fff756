import type { CallTracer } from "./types.js"

/** A call as its caller saw it, which has ended. */
export interface CallSpan {
    /** The method, as `addTodo(title:)`. */
    readonly name: string
    /** The name of the actor. */
    readonly actor: string
    /** Of the call itself: what was sent. */
    readonly traceparent: string
    /** Of what it is a part of; undefined where the call began the trace. */
    readonly parent?: string | undefined
    /** What the answer said: of the span at the server. Undefined where that does not trace, and for a kept answer. */
    readonly answered?: string | undefined
    /** In milliseconds, as `Date.now()` counts them. */
    readonly began: number
    readonly ended: number
    /** The code of the error that it ended with. */
    readonly error?: string | undefined
}

export interface TraceOptions {
    /** The `traceparent` of what calls are part of: asked with each call, as the span of now of another library. One that an option of the call gives goes before. */
    current?: () => string | null | undefined
    /** Of calls that are part of no trace, how many begin one that is kept: from 0, none, to 1, all. Default 0. */
    sampling?: number
    /** Told the span of each call whose trace is kept, for a collector. Without it there is none: the server's are children of what `current` says. */
    spanEnded?: (span: CallSpan) => void
}

const grammar = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/

/** So many random digits; that all are 0 will not happen. */
const digits = (count: number): string =>
    Array.from(crypto.getRandomValues(new Uint8Array(count / 2)), (byte) => (byte + 256).toString(16).slice(1)).join("")

/** The `traceparent` of a trace that begins, for what is to be one with several calls. */
export const newTrace = (isKept = true): string => `00-${digits(32)}-${digits(16)}-0${Number(isKept)}`

/** What a function of the program throws costs no call. */
function quietly<T>(body: () => T): T | undefined {
    try {
        return body()
    } catch (error) {
        const tell = (globalThis as any).reportError ?? console.error
        tell(error)
        return undefined
    }
}

/** Has calls be parts of traces, as the W3C's Trace Context says: `connect(url, { traces: traces({ sampling: 0.01 }) })`. */
export function traces({ current, sampling = 0, spanEnded }: TraceOptions = {}): CallTracer {
    return (name, actor, options) => {
        const given = options.traceparent ?? (current && quietly(current))
        // What is no traceparent is none.
        const parent = given && grammar.test(given) ? given : undefined
        if (!parent && Math.random() >= sampling) return undefined
        let traceparent = parent ?? newTrace()
        // The last digit is odd where the trace is kept.
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
