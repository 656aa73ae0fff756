import type { Environment } from "./environment.js"

/** The milliseconds of silence on a visible page before the server is probed; `patience` is the time for its response. */
const probeAfter = 20_000
const patience = 10_000
/** The time for a response after a network change: data in transit over the old network seldom arrives. */
const shortPatience = 3_000

/** Detects half-open connections. A page has no access to pings, so this object sends probe messages. */
export class Heartbeat {
    private _timer: any
    private _receivedAt = 0
    /** The deadline of the current probe; 0 if no probe is outstanding. */
    private _end = 0

    constructor(private _environment: Environment, private _sendProbe: () => void, private _didTimeOut: () => void) {}

    /** Starts the heartbeat of an open connection that has received data. */
    _start(): void {
        this._didReceive()
        this._arm()
    }

    _stop(): void {
        this._environment.clearTimeout(this._timer)
    }

    _didReceive(): void {
        this._receivedAt = this._environment.now()
        this._end = 0
    }

    /** Sends a probe now, unless one is outstanding. */
    _probe(isNetwork = false): void {
        const time = isNetwork ? shortPatience : patience
        const end = this._environment.now() + time
        if (!this._end) this._sendProbe()
        else if (end >= this._end) return
        this._end = end
        this._set(() => (this._end ? this._didTimeOut() : this._arm()), time)
    }

    private _arm(): void {
        // The absolute value also covers a clock that was set back.
        const silence = (): number => Math.abs(this._environment.now() - this._receivedAt)
        this._set(() => {
            if (silence() < probeAfter) this._arm()
            // A hidden page has no viewer and delayed timers; it probes when it becomes visible.
            else if (this._environment.isVisible()) this._probe()
        }, probeAfter - silence())
    }

    private _set(action: () => void, milliseconds: number): void {
        this._stop()
        this._timer = this._environment.setTimeout(action, milliseconds)
    }
}
