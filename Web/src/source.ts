import type { Line } from "./connection.js"
import type { TrebuchetError } from "./errors.js"
import { share } from "./json.js"
import { applyPatch } from "./patch.js"
import { Listeners, Value } from "./store.js"
import type { Filter, StreamStatus } from "./types.js"

/** The subject of a stream. */
export interface Target {
    readonly actorID: string
    readonly targetIdentifier: string
    readonly filter?: Filter
}

const waiting: StreamStatus = { phase: "waiting" }
const live: StreamStatus = { phase: "live" }
const stale: StreamStatus = { phase: "stale" }

/** One stream of the server, shared by all its observers. It determines the new values and the position to resume from. */
export class Source {
    readonly _status = new Value(waiting)
    /** Called with each new value or event. */
    readonly _listeners = new Listeners<[unknown]>()
    /** Called when the stream has ended. */
    readonly _ends = new Listeners<[TrebuchetError]>()
    /** The newest value as JSON; undefined before the first value, and for events. */
    _value: unknown
    /** The connection and the call that requested the stream; undefined if it must be requested. */
    _line: Line | undefined
    _callID: string | undefined
    /** True if the server has begun the stream on that connection. */
    _hasBegun = false
    _streamID: string | undefined
    _epoch = ""
    _last = 0
    /** The timer that runs after the last observer has left, or until the next request. */
    _timer: unknown

    constructor(readonly _target: Target, readonly _isEvents: boolean) {}

    /** Returns the message that requests the stream from the server. */
    _request(): [kind: string, payload: object] {
        const { _target: target, _callID: callID, _streamID: streamID } = this
        return streamID === undefined
            ? ["invocation", { callID, ...target }]
            : ["streamResume", { streamID, callID, ...target, epoch: this._epoch, lastSequence: this._last }]
    }

    /** Handles the start of the stream. Returns false if events have been lost. */
    _started({ streamID, epoch, sequenceNumber }: any): boolean {
        // Another incarnation also continues the stream if it contains everything that was received here.
        const goesOn = epoch === this._epoch || sequenceNumber === this._last
        if (this._isEvents && !goesOn && this._epoch) return false
        this._streamID = streamID
        this._epoch = epoch
        this._hasBegun = true
        if (!goesOn) this._last = Number(sequenceNumber) || 0
        if (this._isEvents || (goesOn && this._value !== undefined)) this._setStatus(live)
        return true
    }

    /** Handles the next value or event. Returns false if it does not apply to the current value. */
    _take({ sequenceNumber: sequence, data, patch, base }: any): boolean {
        if (!(sequence > this._last)) return true
        if (this._isEvents) {
            if (sequence !== this._last + 1) return false
            this._last = sequence
            this._listeners.notify(data)
            return true
        }
        let value = data
        if (patch !== undefined) {
            if (base !== this._last || this._value === undefined) return false
            try {
                value = applyPatch(this._value, patch)
            } catch {
                return false
            }
        } else if (data === undefined) return true
        else value = share(this._value, data)
        this._last = sequence
        const isNew = value !== this._value
        this._value = value
        this._setStatus(live)
        if (isNew) this._listeners.notify(value)
        return true
    }

    /** Handles the loss or the drain of the connection. */
    _interrupted(): void {
        this._line = this._callID = undefined
        this._setStatus(this._value === undefined && !this._isEvents ? waiting : stale)
    }

    /** Resets the stream, so that it is requested from the beginning. The value stays. */
    _restarted(): void {
        this._line = this._callID = this._streamID = undefined
        this._epoch = ""
        this._last = 0
    }

    /** Handles the departure of the last observer: the next observer restarts the stream. */
    _released(): void {
        this._restarted()
        if (this._status.getSnapshot().phase !== "failed") this._setStatus(waiting)
    }

    _failed(error: TrebuchetError): void {
        this._restarted()
        this._setStatus({ phase: "failed", error })
        this._ends.notify(error)
    }

    private _setStatus(status: StreamStatus): void {
        const before = this._status.getSnapshot()
        if (before.phase !== status.phase || before.error !== status.error) this._status.set(status)
    }
}
