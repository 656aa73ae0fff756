import type { RoomEvent } from "./types.js"

/** A place in the events of a room, and those of its lives before, as far as it has what they had. */
export type EventPosition = { epoch: string; last: number; earlier?: { epoch: string; last: number }[] }

/** Which events of a room a client has seen: so it has each once, in order, and knows of those that it has missed. Pure. */
export class Cursor {
    private _epoch: string | undefined
    private _earlier: { epoch: string; last: number }[] = []
    _last = 0
    _missed = 0

    /** The room is joined; it is where `events` says. */
    _joined({ epoch, last, earlier = [] }: EventPosition): void {
        // Others know of the client from the first time on. A room that has moved may have lost what it had last; one that was made anew
        // counts from one again.
        if (this._epoch === undefined) this._last = last
        else if (this._epoch !== epoch) {
            // The newest life that both know: a room that was restored knows an earlier one only.
            const lives = new Map([...earlier, { epoch, last }].map((life) => [life.epoch, life.last]))
            const mine = [...this._earlier, { epoch: this._epoch, last: this._last }]
            const known = mine.filter((life) => lives.has(life.epoch)).pop()
            this._last = known ? Math.min(this._last, known.last, lives.get(known.epoch)!) : 0
        }
        this._epoch = epoch
        this._earlier = earlier
    }

    /** Whether others lie between, which are to be asked for before. */
    _isBehind({ number }: RoomEvent): boolean {
        return number > this._last + 1
    }

    /** Whether it is new. */
    _take({ number }: RoomEvent): boolean {
        if (number <= this._last) return false
        this._missed += number - this._last - 1
        this._last = number
        return true
    }
}
