import type { Line } from "./connection.js"
import type { TrebuchetError } from "./errors.js"
import { share } from "./json.js"
import { applyPatch } from "./patch.js"
import { Listeners, Value } from "./store.js"
import type { Filter, StreamStatus } from "./types.js"

/** What a stream is of. */
export interface Target {
    readonly actorID: string
    readonly targetIdentifier: string
    readonly filter?: Filter
}

const waiting: StreamStatus = { phase: "waiting" }
const live: StreamStatus = { phase: "live" }
const stale: StreamStatus = { phase: "stale" }

/** One stream of the server, for all who observe the same: which values are new, and where to take it up again. */
export class Source {
    readonly _status = new Value(waiting)
    /** Called with each new value or event. */
    readonly _listeners = new Listeners<[unknown]>()
    /** Called when it has ended. */
    readonly _ends = new Listeners<[TrebuchetError]>()
    /** The newest value as JSON; undefined before the first one, and of events. */
    _value: unknown
    /** The line on which it was asked for, and by which call; undefined when it is to be asked for. */
    _line: Line | undefined
    _callID: string | undefined
    /** Whether the server has begun it on that line, if there is one. */
    _hasBegun = false
    _streamID: string | undefined
    _epoch = ""
    _last = 0
    /** Runs while nobody observes any more, or until it is asked for again. */
    _timer: unknown

    constructor(readonly _target: Target, readonly _isEvents: boolean) {}

    /** What asks the server for it. */
    _request(): [kind: string, payload: object] {
        const { _target: target, _callID: callID, _streamID: streamID } = this
        return streamID === undefined
            ? ["invocation", { callID, ...target }]
            : ["streamResume", { streamID, callID, ...target, epoch: this._epoch, lastSequence: this._last }]
    }

    /** The server has begun it. False when events have been lost. */
    _started({ streamID, epoch, sequenceNumber }: any): boolean {
        // In another life, too, if that has all that is here.
        const goesOn = epoch === this._epoch || sequenceNumber === this._last
        if (this._isEvents && !goesOn && this._epoch) return false
        this._streamID = streamID
        this._epoch = epoch
        this._hasBegun = true
        if (!goesOn) this._last = Number(sequenceNumber) || 0
        if (this._isEvents || (goesOn && this._value !== undefined)) this._tell(live)
        return true
    }

    /** The next value or event. False when it cannot be made out of what is here. */
    _take({ sequenceNumber: sequence, data, patch, base }: any): boolean {
        if (!(sequence > this._last)) return true
        if (this._isEvents) {
            if (sequence !== this._last + 1) return false
            this._last = sequence
            this._listeners.tell(data)
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
        this._tell(live)
        if (isNew) this._listeners.tell(value)
        return true
    }

    /** Its line is no more, or leaves. */
    _interrupted(): void {
        this._line = this._callID = undefined
        this._tell(this._value === undefined && !this._isEvents ? waiting : stale)
    }

    /** It is to be asked for as if it had never been. The value stays. */
    _restarted(): void {
        this._line = this._callID = this._streamID = undefined
        this._epoch = ""
        this._last = 0
    }

    /** Nobody observes it: the next to come begins it anew. */
    _released(): void {
        this._restarted()
        if (this._status.getSnapshot().phase !== "failed") this._tell(waiting)
    }

    _failed(error: TrebuchetError): void {
        this._restarted()
        this._tell({ phase: "failed", error })
        this._ends.tell(error)
    }

    private _tell(status: StreamStatus): void {
        const before = this._status.getSnapshot()
        if (before.phase !== status.phase || before.error !== status.error) this._status.set(status)
    }
}
