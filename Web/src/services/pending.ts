import type { Command } from "./commands.js"
import type { TrebuchetError } from "./trebuchet.js"

/** A write that the server has not answered, or whose answer is not seen in all results yet. */
export interface PendingWrite {
    /** Of the tab that has made it: with the number it tells the server which write this is. */
    readonly secret: string
    readonly number: number
    /** The user's id; empty for nobody. */
    readonly account: string
    readonly commands: Command[]
    /** When it was made, in milliseconds since 1970 by the clock here. */
    readonly time: number
    /** It is not kept on the disk yet, and is not sent before. */
    isBeingKept?: boolean
    /** It was sent, perhaps in vain. */
    wasSent?: boolean
    /** The number of the server's write, once it is done. */
    revision?: number
    /** Tells who waits for it. */
    _end?: ((error?: TrebuchetError) => void) | undefined
}

/** What the server says of a write. */
export interface Outcome {
    number: number
    revision: number
    index?: number
    error?: Record<string, any>
    shown?: Record<string, number>
}

/** Writes that are done and wait to be seen; the first of more are not shown any more. */
const doneLimit = 1000
/** Whether the server has not answered it. */
export const isWaiting = ({ revision }: PendingWrite): boolean => revision === undefined

/** The writes of an account to a collection, in the order in which they are done: those of tabs that are gone, and then one's own. Pure. */
export class PendingWrites {
    _all: PendingWrite[] = []
    /** Resolves when no other tab will send them. */
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

    /** Forgets what all results show: they are at this write, or behind it. */
    _forget(seen: number): void {
        this._all = this._all.filter((each) => isWaiting(each) || each.revision! > seen)
        let excess = this._all.length - this._waiting.length - doneLimit
        this._all = this._all.filter((each) => isWaiting(each) || excess-- <= 0)
    }
}
