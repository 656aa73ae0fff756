import { byteCount, errorOf } from "./calls.js"
import { type Connection, type Line, usualTerms } from "./connection.js"
import type { Environment } from "./environment.js"
import { TrebuchetError } from "./errors.js"
import { Source, Target } from "./source.js"
import type { ConnectOptions } from "./types.js"

/**
 * The milliseconds that an unobserved stream stays open, so that a recreated view can reuse it. It is also the delay before a stream is
 * requested again.
 */
const lingering = 100
/** The longest delay in milliseconds that a server can demand before a stream is requested again. */
const longestWait = 600_000

/** The streams of a client; each message is assigned to its stream. Streams outlive their connection, and each resumes on the next one. */
export class Streams {
    _connection!: Connection
    /** The referenced streams by target: one stream for all observers of the same target. */
    private _known = new Map<string, WeakRef<Source>>()
    private _forgotten = new FinalizationRegistry<string>((key) => {
        if (!this._known.get(key)?.deref()) this._known.delete(key)
    })
    /** The observed streams. */
    private _active = new Set<Source>()

    constructor(private _environment: Environment, private _nextNumber: () => number, private _options: ConnectOptions) {}

    /** Returns the number of streams that were requested on the current connection and have not begun. */
    _beginning = (): number => {
        let count = 0
        for (const source of this._active) if (source._callID && !source._hasBegun) count++
        return count
    }

    _source(target: Target, isEvents: boolean): Source {
        const key = JSON.stringify([target, isEvents])
        let source = this._known.get(key)?.deref()
        if (!source) {
            source = new Source(target, isEvents)
            this._known.set(key, new WeakRef(source))
            this._forgotten.register(source, key)
        }
        return source
    }

    /** Requests the stream while it has observers. Returns a function that ends the observation. */
    _observe(source: Source, listener: (value: any) => void, failed: (error: TrebuchetError) => void): () => void {
        const ends = [source._listeners.add(listener), source._ends.add(failed)]
        this._environment.clearTimeout(source._timer)
        this._active.add(source)
        this._begin(source)
        return () => {
            for (const end of ends.splice(0)) end()
            if (!source._listeners.size) this._later(source, lingering)
        }
    }

    /** Requests the stream, unless it was requested on the current connection. */
    _begin(source: Source): void {
        const { _line: line, _isClosed: isClosed, _error: error } = this._connection
        // The failure is delayed until the observer has the function that ends the observation.
        const fail = (error: TrebuchetError): void => void Promise.resolve().then(() => this._fail(source, error))
        if (isClosed) fail(error!)
        if (!line || source._line === line) return
        source._callID = String(this._nextNumber())
        const [kind, payload] = source._request()
        const { targetIdentifier, actorID } = source._target
        const metadata = this._options.metadata?.(targetIdentifier, actorID)
        const text = this._connection._text(kind, { ...payload, metadata })
        const size = byteCount(text)
        if (size > (line._terms ?? usualTerms).messageSize) {
            source._callID = undefined
            // The request waits until the server has announced its limits.
            if (line._terms) fail(new TrebuchetError("invalidArguments", `the message of ${targetIdentifier} has ${size} bytes`))
            return
        }
        source._line = line
        source._hasBegun = false
        this._connection._write(line, text)
    }

    /** Requests the stream again after a delay, or releases it if it has no observers then. */
    private _later(source: Source, milliseconds: number): void {
        this._environment.clearTimeout(source._timer)
        if (this._connection._isClosed) return
        const look = (): void => (source._listeners.size ? this._begin(source) : this._release(source))
        source._timer = this._environment.setTimeout(look, milliseconds)
    }

    private _release(source: Source): void {
        this._active.delete(source)
        this._stop(source)
        source._released()
    }

    /** Ends the stream at the server, or cancels its request. */
    private _stop({ _line: line, _hasBegun: hasBegun, _streamID: streamID, _callID: callID }: Source): void {
        if (!line) return
        if (hasBegun) this._end(line, streamID)
        else this._connection._send(line, "cancel", { callID })
    }

    private _end(line: Line, streamID: unknown): void {
        this._connection._send(line, "streamEnd", { streamID, reason: "clientUnsubscribed" })
    }

    private _fail(source: Source, error: TrebuchetError): void {
        source._failed(error)
        // The client requests the stream again after a temporary error; other errors wait for the next connection. Errors end event
        // subscriptions.
        const { code, retryAfter } = error
        if (source._listeners.size && (code === "rateLimited" || code === "unavailable")) {
            const wait = retryAfter! > 0 ? Math.min(retryAfter!, longestWait) : 1000
            this._later(source, wait * (1 + this._environment.random()))
        }
    }

    // Notifications from the connection

    _opened(): void {
        for (const source of this._active) if (source._listeners.size) this._begin(source)
    }

    _lost(line: Line): void {
        for (const source of this._active) if (source._line === line) source._interrupted()
    }

    _gaveUp(error: TrebuchetError): void {
        if (!this._connection._isClosed) return
        for (const source of [...this._active]) {
            this._environment.clearTimeout(source._timer)
            this._fail(source, error)
        }
    }

    /** Handles the refusal of the call that requests a stream. */
    _refused({ callID, error }: any, line: Line): void {
        const source = this._find((each) => each._line === line && each._callID === callID)
        if (source && error) this._didFail(source, errorOf(error))
    }

    _received(kind: string, payload: any, line: Line): void {
        const { streamID } = payload
        if (kind === "streamStart") {
            const source = this._find((each) => each._line === line && each._callID === payload.callID)
            if (!source) return this._end(line, streamID)
            if (!source._started(payload)) this._lose(source, line, streamID, "restarted")
            return
        }
        // Stream IDs are valid on one connection; the same ID names a different stream on another.
        const source = this._find((each) => each._line === line && each._hasBegun && each._streamID === streamID)
        if (!source) return
        if (kind === "streamData") {
            if (source._take(payload)) return
            if (source._isEvents) return this._lose(source, line, streamID, "have a gap")
            // This requests a full value.
            this._end(line, streamID)
            source._interrupted()
            source._restarted()
            // The pause prevents a busy retry loop.
            this._later(source, lingering)
        } else if (kind === "streamError") this._didFail(source, errorOf(payload))
        else if (kind === "streamEnd") {
            const { reason } = payload
            // The stream resumes on the next connection.
            if (reason === "serverDraining" || reason === "connectionClosed") source._interrupted()
            else if (reason === "actorTerminated") this._fail(source, new TrebuchetError("actorNotFound", "the actor no longer exists"))
            else this._fail(source, new TrebuchetError("unavailable", "the stream has ended: " + reason))
        }
    }

    private _didFail(source: Source, error: TrebuchetError): void {
        // The request was too late for a draining server, and is repeated on the next connection.
        if (error.code === "unavailable" && source._line !== this._connection._line) source._interrupted()
        else this._fail(source, error)
    }

    private _lose(source: Source, line: Line, streamID: unknown, what: string): void {
        this._end(line, streamID)
        this._fail(source, new TrebuchetError("overflow", `events of ${source._target.actorID} ${what}`))
    }

    private _find(matches: (source: Source) => boolean): Source | undefined {
        for (const source of this._active) if (matches(source)) return source
        return undefined
    }
}
