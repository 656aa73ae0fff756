/** The error codes of calls and streams. Servers may send other codes. */
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
    /** The kind of failure. `unknownOutcome` means that a call was sent and may have run. */
    readonly code: ErrorCode
    /** For `application`: the Swift type of the error that the method threw. */
    readonly type?: string | undefined
    /** For `application`: the error that the method threw. */
    readonly data?: unknown
    /** The milliseconds during which another call would also be refused. */
    readonly retryAfter?: number | undefined
    /** For a refused transaction: the index of the command that was refused. */
    readonly index?: number

    constructor(code: ErrorCode, message: string, type?: string, data?: unknown, retryAfter?: number) {
        super(message)
        this.code = code
        this.type = type
        this.data = data
        this.retryAfter = retryAfter
    }
}
TrebuchetError.prototype.name = "TrebuchetError"
