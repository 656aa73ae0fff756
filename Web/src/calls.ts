import type { Connection, Line } from "./connection.js"
import type { Environment } from "./environment.js"
import { TrebuchetError } from "./errors.js"
import { unencodable } from "./json.js"
import type { Call, ConnectOptions, JSONCoder, MethodInfo, Result, TracedCall, UntypedCallOptions } from "./types.js"

/** The bytes that the server counts for each message in addition to its size. */
const messageCost = 4096
/** The longest timer in milliseconds (23 days); a timer of 2^31 fires immediately. */
const longestTimer = 2e9

interface PendingCall {
    /** An increasing number. */
    _callID: string
    /** The members of the message that are the same on every connection. */
    _payload: object
    _method: MethodInfo
    /** The arguments as JSON, encoded when the call was made. */
    _arguments: string
    /** The time at which the call ends, if the caller has set a timeout. */
    _deadline: number | undefined
    _isIdempotent: boolean | undefined
    /** The connection that the call was last sent over; undefined while the call waits. */
    _line?: Line | undefined
    _cost: number
    /** True if the call was sent and may have run. */
    _wasSent?: boolean
    /** The call session in which the call was first sent; the server records the response there. */
    _session?: string | undefined
    /** Ends the call; `traceparent` is the value from the response. */
    _end(error: TrebuchetError | undefined, value?: unknown, traceparent?: string): void
}

export const byteCount = (text: string): number => new TextEncoder().encode(text).length

/** Returns the error of a response; `method` has the codecs of the errors that it throws. */
export function errorOf(payload: any, method?: MethodInfo): TrebuchetError {
    const { code, message, errorMessage, type, data, retryAfterMilliseconds } = payload
    // The type name may be qualified with the enclosing type.
    const codec = type && method?.errors?.[type.split(".").pop()]
    return new TrebuchetError(
        code ?? "internal",
        message ?? errorMessage ?? "",
        type,
        codec && data !== undefined ? codec.read(data) : data,
        retryAfterMilliseconds
    )
}

type Metadata = Readonly<Record<string, string>> | undefined
const merged = (first: Metadata, second: Metadata): Metadata => first && second ? { ...first, ...second } : (first ?? second)

/** The calls of a client, including calls that wait for a connection or for free capacity. */
export class Calls {
    _connection!: Connection
    private _pending = new Map<string, PendingCall>()
    private _waiting: PendingCall[] = []
    /** The connection that calls use; `_count` and `_bytes` measure its in-flight calls. */
    private _line: Line | undefined
    private _count = 0
    private _bytes = 0

    constructor(
        private _options: ConnectOptions,
        private _environment: Environment,
        private _coder: JSONCoder,
        private _nextNumber: () => number,
        /** Returns the number of streams that were requested and have not begun: the server counts them as calls. */
        private _beginning: () => number
    ) {}

    _call(actorID: string, method: MethodInfo, args: readonly unknown[], options: UntypedCallOptions = {}): Call<any, any> {
        const call = new Promise((resolve, reject) =>
            this._start(
                actorID,
                method,
                args,
                { ...options, ...this._options.traces?.(method.target, actorID, options) },
                (error, value) => (error ? reject(error) : resolve(value))
            )
        ) as Call<any, any>
        call.result = (): Promise<Result<any, any>> =>
            call.then(
                (value) => ({ ok: true, value }),
                (error) => ({ ok: false, error })
            )
        return call
    }

    private _start(
        actorID: string,
        method: MethodInfo,
        args: readonly unknown[],
        { idempotent, timeout, signal, traceparent, metadata, genericSubstitutions, ended }: UntypedCallOptions & Partial<TracedCall>,
        end: PendingCall["_end"]
    ): void {
        const { target } = method
        const { _connection: connection, _environment: environment } = this
        const patience = Math.min(timeout ?? this._options.timeout ?? 30_000, longestTimer)
        const refuse = (code: string, text: string): void => end(new TrebuchetError(code, text))
        if (signal?.aborted) return refuse("cancelled", target + " was cancelled")
        const { waitingCalls = 1000 } = this._options
        if (this._waiting.length >= waitingCalls * (connection._line ? 10 : 1)) {
            return refuse("rateLimited", this._waiting.length + " calls are queued already (waitingCalls)")
        }
        if (!connection._isExpected) {
            return refuse("unavailable", "no connection: " + connection._status.getSnapshot().error?.message)
        }
        let text: string
        try {
            if (!Array.isArray(args)) throw Error("the arguments are not an array")
            // Null is an absent value on the wire; codecs do not handle it.
            const values = args.map((each, index) => (each == null ? each : (method.arguments?.[index]?.write(each) ?? each)))
            const flaw = unencodable(values, true)
            if (flaw) throw Error(flaw + " cannot be sent as JSON")
            text = this._coder.stringify(values)
        } catch (error) {
            return refuse("invalidArguments", `${target}: ${(error as any)?.message}`)
        }
        const callID = String(this._nextNumber())
        const stop = (code: string, text: string): void => {
            if (call._line) connection._send(call._line, "cancel", { callID })
            call._end(new TrebuchetError(code, text))
        }
        const abort = (): void => stop("cancelled", target + " was cancelled")
        const call: PendingCall = {
            _callID: callID,
            _payload: {
                callID,
                traceparent,
                metadata: merged(this._options.metadata?.(target, actorID), metadata),
                genericSubstitutions,
                actorID,
                targetIdentifier: target,
            },
            _method: method,
            _arguments: text,
            _deadline: timeout ? environment.now() + patience : undefined,
            _isIdempotent: idempotent ?? method.idempotent,
            _cost: 0,
            _end: (error, value, traceparent) => {
                if (!this._pending.delete(callID)) return
                environment.clearTimeout(timer)
                signal?.removeEventListener("abort", abort)
                if (call._line) this._left(call)
                else this._waiting = this._waiting.filter((each) => each !== call)
                end(error, value)
                ended?.(error, traceparent)
                this._sendNext()
                connection._settle()
            },
        }
        const timer =
            patience &&
            environment.setTimeout(() => {
                const what = call._wasSent ? "answered" : "sent"
                stop("timeout", `${target} was not ${what} within ${patience} ms`)
            }, patience)
        signal?.addEventListener("abort", abort)
        this._pending.set(callID, call)
        this._waiting.push(call)
        this._sendNext()
    }

    // Sending

    /** Sends waiting calls in order, as far as the limits of the server permit. */
    _sendNext(): void {
        const line = this._connection._line
        const terms = line?._terms
        if (!terms || line !== this._line) return
        for (let call = this._waiting[0]; call; call = this._waiting[0]) {
            if (this._count + this._beginning() >= terms.callsPerConnection) return
            const text = this._message(call, terms.session)
            const size = byteCount(text)
            const cost = size + messageCost
            if (this._count && this._bytes + cost > terms.callBytesPerConnection) return
            const { target } = call._method
            if (call._session && !terms.session) {
                call._end(
                    new TrebuchetError("unknownOutcome", target + " was sent, and the server records no responses")
                )
            } else if (size > terms.messageSize) {
                const text = `the message of ${target} has ${size} bytes; the server accepts ${terms.messageSize} (ServerLimits.messages.inboundBytes)`
                call._end(new TrebuchetError(call._wasSent ? "unknownOutcome" : "invalidArguments", text))
            } else {
                this._waiting.shift()
                call._line = line
                call._cost = cost
                this._count++
                this._bytes += cost
                if (call._isIdempotent) call._session ??= terms.session
                call._wasSent = true
                this._connection._write(line, text)
            }
        }
    }

    private _message(call: PendingCall, session: string | undefined): string {
        const { _deadline: deadline, _session: recordedSession } = call
        const envelope = {
            type: recordedSession ? "repeat" : "invocation",
            payload: {
                ...call._payload,
                timeoutMilliseconds: deadline && Math.max(1, Math.ceil(deadline - this._environment.now())),
                session: call._isIdempotent ? (recordedSession ?? session) : undefined,
            },
        }
        return this._coder.stringify(envelope).slice(0, -2) + `,"arguments":${call._arguments}}}`
    }

    private _left(call: PendingCall): void {
        if (call._line !== this._line) return
        this._count--
        this._bytes -= call._cost
    }

    // Notifications from the connection

    _greeted(line: Line): void {
        this._line = line
        this._count = this._bytes = 0
        this._sendNext()
    }

    /** Returns true if the message was the response to a call. */
    _answered({ callID, error, result, traceparent }: any): boolean {
        const call = this._pending.get(callID)
        if (!call) return false
        const { _method: method } = call
        let failure: TrebuchetError | undefined
        try {
            if (error) failure = errorOf(error, method)
            else if (method.result && result != null) result = method.result.read(result)
        } catch (problem) {
            failure = new TrebuchetError("internal", `the response of ${method.target} cannot be decoded: ` + (problem as any)?.message)
        }
        call._end(failure, result, traceparent)
        return true
    }

    _isUsing(line: Line): boolean {
        return [...this._pending.values()].some((call) => call._line === line)
    }

    _lost(line: Line, error: TrebuchetError): void {
        for (const call of [...this._pending.values()]) {
            if (call._line !== line) continue
            if (call._session) {
                this._left(call)
                call._line = undefined
                this._waiting.push(call)
            } else this._endUnknown(call, error)
        }
        // Calls are sent in the order of their numbers on each connection.
        this._waiting.sort((a, b) => +a._callID - +b._callID)
        this._sendNext()
    }

    _gaveUp(error: TrebuchetError): void {
        for (const call of [...this._pending.values()]) {
            // A call that was sent over a draining connection may still receive its response.
            if (call._line && !this._connection._isClosed) continue
            if (call._wasSent) this._endUnknown(call, error)
            else call._end(new TrebuchetError("unavailable", error.message))
        }
    }

    private _endUnknown(call: PendingCall, error: TrebuchetError): void {
        const text = `${call._method.target} was sent and may have run: ${error.message}`
        call._end(new TrebuchetError("unknownOutcome", text))
    }
}
