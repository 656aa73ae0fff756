/** The outcome of a call or a stream. Servers may know more codes than these. */
export type ErrorCode =
    | "actorNotFound"
    | "methodNotFound"
    | "invalidArguments"
    | "unauthenticated"
    | "unauthorized"
    | "rateLimited"
    | "timeout"
    | "cancelled"
    | "unavailable"
    | "unknownOutcome"
    | "overflow"
    | "application"
    | "internal"
    | (string & {})

export class TrebuchetError extends Error {
    /** What kind of failure it is; `unknownOutcome` says that a call was sent and may have run. */
    readonly code: ErrorCode
    /** Of `application`: the Swift type of the error that the method threw. */
    readonly type?: string | undefined
    /** Of `application`: that error. */
    readonly data?: unknown
    /** Milliseconds before which another call would be refused, too. */
    readonly retryAfter?: number | undefined

    constructor(code: ErrorCode, message: string, type?: string, data?: unknown, retryAfter?: number) {
        super(message)
        this.code = code
        this.type = type
        this.data = data
        this.retryAfter = retryAfter
    }
}
TrebuchetError.prototype.name = "TrebuchetError"
