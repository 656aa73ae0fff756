import type { RoomEvent } from "./types.js"

/** A position in the events of a room, with the positions in its earlier incarnations whose events it includes. */
export type EventPosition = { epoch: string; last: number; earlier?: { epoch: string; last: number }[] }

/** The maximum number of earlier incarnations, of which the newest count. */
const mostEarlier = 8

/** Tracks the room events that a client has received, so that each is delivered once and in order, and missed events are counted. Pure. */
export class EventCursor {
    private _epoch: string | undefined
    private _earlier: { epoch: string; last: number }[] = []
    _last = 0
    _missed = 0
    /** How often the known room had ended and another one was joined. */
    _restarts = 0

    /** Sets the position after a join; `events` is the position of the room. */
    _joined({ epoch, last, earlier: all = [] }: EventPosition): void {
        // Whatever a server sends: the cursor keeps them.
        const earlier = all.slice(-mostEarlier)
        // Other members know the client from its first join on. A migrated room may have lost its latest events; a new incarnation restarts
        // its event numbers at one.
        if (this._epoch === undefined) this._last = last
        else if (this._epoch !== epoch) {
            // This selects the newest incarnation that both know: a restored room knows only an earlier one.
            const incarnations = new Map([...earlier, { epoch, last }].map((incarnation) => [incarnation.epoch, incarnation.last]))
            const mine = [...this._earlier, { epoch: this._epoch, last: this._last }]
            const known = mine.filter((incarnation) => incarnations.has(incarnation.epoch)).pop()
            this._last = known ? Math.min(this._last, known.last, incarnations.get(known.epoch)!) : 0
            if (!known) this._restarts++
        }
        this._epoch = epoch
        this._earlier = earlier
    }

    /** Returns true if earlier events are missing and must be requested first. */
    _isBehind({ number }: RoomEvent): boolean {
        return number > this._last + 1
    }

    /** Returns true if the event is new. */
    _take({ number }: RoomEvent): boolean {
        if (number <= this._last) return false
        this._missed += number - this._last - 1
        this._last = number
        return true
    }
}
