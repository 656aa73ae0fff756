import type { Environment } from "./environment.js"

/** The milliseconds of silence on a visible page before the server is probed; `patience` is the time for its response. */
const askAfter = 20_000
const patience = 10_000
/** The time for a response after a network change: data in transit over the old network seldom arrives. */
const shortPatience = 3_000

/** Detects half-open connections. A page has no access to pings, so this object sends probe messages. */
export class Heartbeat {
    private _timer: any
    private _heardAt = 0
    /** The deadline of the current probe; 0 if no probe is outstanding. */
    private _end = 0

    constructor(private _environment: Environment, private _question: () => void, private _isDead: () => void) {}

    /** Starts the heartbeat of an open connection that has received data. */
    _start(): void {
        this._heard()
        this._arm()
    }

    _stop(): void {
        this._environment.clearTimeout(this._timer)
    }

    _heard(): void {
        this._heardAt = this._environment.now()
        this._end = 0
    }

    /** Sends a probe now, unless one is outstanding. */
    _ask(isNetwork = false): void {
        const time = isNetwork ? shortPatience : patience
        const end = this._environment.now() + time
        if (!this._end) this._question()
        else if (end >= this._end) return
        this._end = end
        this._set(() => (this._end ? this._isDead() : this._arm()), time)
    }

    private _arm(): void {
        // The absolute value also covers a clock that was set back.
        const silence = (): number => Math.abs(this._environment.now() - this._heardAt)
        this._set(() => {
            if (silence() < askAfter) this._arm()
            // A hidden page has no viewer and delayed timers; it probes when it becomes visible.
            else if (this._environment.isVisible()) this._ask()
        }, askAfter - silence())
    }

    private _set(action: () => void, milliseconds: number): void {
        this._stop()
        this._timer = this._environment.setTimeout(action, milliseconds)
    }
}
