import type { Environment } from "./environment.js"

/** Milliseconds of silence on a visible page until the server is asked whether it is there, and then until it is given up. */
const askAfter = 20_000
const patience = 10_000
/** The same where the network has just gone or come: what was under way over the old one seldom comes. */
const shortPatience = 3_000

/** Finds out that a connection is half open: a page cannot see pings, so it asks. */
export class Heartbeat {
    private _timer: any
    private _heardAt = 0
    /** The server was asked, and has until then to say something; 0 when it has. */
    private _end = 0

    constructor(private _world: Environment, private _question: () => void, private _isDead: () => void) {}

    /** There is a connection, and something has come over it. */
    _start(): void {
        this._heard()
        this._arm()
    }

    _stop(): void {
        this._world.clearTimeout(this._timer)
    }

    _heard(): void {
        this._heardAt = this._world.now()
        this._end = 0
    }

    /** Asks now, unless an answer is waited for. */
    _ask(isNetwork = false): void {
        const time = isNetwork ? shortPatience : patience
        const end = this._world.now() + time
        if (!this._end) this._question()
        else if (end >= this._end) return
        this._end = end
        this._set(() => (this._end ? this._isDead() : this._arm()), time)
    }

    private _arm(): void {
        // A clock that was set back asks, too.
        const silence = (): number => Math.abs(this._world.now() - this._heardAt)
        this._set(() => {
            if (silence() < askAfter) this._arm()
            // Nobody looks at a hidden page, and its timers are late; it asks when it is shown.
            else if (this._world.isVisible()) this._ask()
        }, askAfter - silence())
    }

    private _set(action: () => void, milliseconds: number): void {
        this._stop()
        this._timer = this._world.setTimeout(action, milliseconds)
    }
}
