import type { Command } from "./commands.js"
import type { TrebuchetError } from "./trebuchet.js"

/** A write that has no response yet, or that some results do not show yet. */
export interface PendingWrite {
    /** The secret of the tab that made the write; with the number it identifies the write to the server. */
    readonly secret: string
    readonly number: number
    /** The user's id; empty for an anonymous user. */
    readonly account: string
    readonly commands: Command[]
    /** The local time at which the write was made, in milliseconds since 1970. */
    readonly time: number
    /** True while the write is not on the disk; it is not sent before. */
    isBeingStored?: boolean
    /** True when the store has it. */
    isStored?: boolean
    /** True if the write was sent, possibly without success. */
    wasSent?: boolean
    /** The revision of the write at the server, once it is done. */
    revision?: number
    /** Settles the promise of the caller. */
    _end?: ((error?: TrebuchetError) => void) | undefined
}

/** The server's response to a write. */
export interface Outcome {
    number: number
    revision: number
    index?: number
    error?: Record<string, any>
    shown?: Record<string, number>
}

/** The maximum number of completed writes that some results do not show yet; the oldest excess writes are no longer shown. */
const doneLimit = 1000
/** Returns true if the write has no response yet. */
export const isWaiting = ({ revision }: PendingWrite): boolean => revision === undefined

/** The writes of an account to a collection, in execution order: those of closed tabs, then those of this tab. Pure. */
export class PendingWrites {
    _all: PendingWrite[] = []
    /** Resolves when no other tab will send the writes. */
    _claimed: Promise<boolean> | undefined
    private _last = 0

    constructor(readonly _secret: string) {}

    _add(commands: Command[], time: number, account: string): PendingWrite {
        const write = { secret: this._secret, number: ++this._last, account, commands, time }
        this._all.push(write)
        return write
    }

    get _waiting(): PendingWrite[] {
        return this._all.filter(isWaiting)
    }

    _remove(write: PendingWrite | undefined): void {
        this._all = this._all.filter((each) => each !== write)
    }

    /** Removes the writes that all results show; every result includes the writes up to `seen`. */
    _forget(seen: number): void {
        this._all = this._all.filter((each) => isWaiting(each) || each.revision! > seen)
        let excess = this._all.length - this._waiting.length - doneLimit
        this._all = this._all.filter((each) => isWaiting(each) || excess-- <= 0)
    }
}
