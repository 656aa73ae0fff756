import type { Backend } from "./backend.js"
import type { JoinedRoom } from "./joined-room.js"
import { loadRooms } from "./lazy-module.js"
import { closed, delayAfter, failure, needJSON, wait } from "./rejections.js"
import { DisplayedValue } from "./displayed-value.js"
import { Listeners } from "./trebuchet.js"
import type { Peer, Room, RoomEvent, RoomStatus } from "./types.js"
import { copied, merged } from "./values.js"

/** The app's view of a room. The code that joins it and exchanges messages is trebuchet-rooms.js, which is loaded for the first room. */
export class OpenRoom implements Room<any> {
    readonly peers = new DisplayedValue<readonly Peer[]>([])
    readonly status = new DisplayedValue<RoomStatus>({ phase: "joining", missed: 0, restarts: 0 })
    readonly _listeners = new Listeners<[RoomEvent]>()
    /** The number of events that are not published yet. */
    _publishing = 0
    /** The refused presence. */
    _refused: unknown
    /** Called when the presence changes or a listener is added. */
    _changed: () => void = () => {}
    private _joined: Promise<JoinedRoom>
    private _left: Promise<void> | undefined

    presence: any

    constructor(private _backend: Backend, readonly name: string, presence: any, private _forget: () => void) {
        this.set(presence)
        this._joined = this._load()
        this._joined.catch(() => {})
    }

    set(presence: any): void {
        needJSON("presence", presence, this._backend._json)
        // A refused presence is tried once more when it is set again.
        this._refused = this
        // The presence is a copy: changes that the app makes to its own object take effect at the next `set`.
        this.presence = copied(presence)
        this._changed()
    }

    patch(changes: object): void {
        needJSON("presence", changes, this._backend._json)
        this.set(merged(this.presence, copied(changes)))
    }

    async publish(topic: string, payload: unknown): Promise<number> {
        const { _account: account } = this._backend
        needJSON("payload", payload, this._backend._json)
        const copy = copied(payload)
        this._publishing++
        try {
            return await (await this._joined)._publish(topic, copy, account)
        } finally {
            this._publishing--
        }
    }

    subscribe(topic: string | null, listener: (event: RoomEvent) => void): () => void {
        const end = this._listeners.add((event) => {
            if (topic === null || event.topic === topic) listener(event)
        })
        this._changed()
        return end
    }

    async history(topic?: string | null, after?: number | null, limit?: number | null): Promise<RoomEvent[]> {
        return (await this._joined)._history(topic, after, limit)
    }

    leave(): Promise<void> {
        if (!this._left) {
            this._forget()
            this._left = this._joined.then((room) => room._leave())
        }
        return this._left
    }

    private async _load(): Promise<JoinedRoom> {
        for (let failures = 0; ; await wait(delayAfter(failures++))) {
            try {
                const { JoinedRoom } = await loadRooms()
                return new JoinedRoom(this._backend, this)
            } catch (error) {
                if (this._backend._isClosed) throw closed()
                this.status._show({ phase: "joining", error: failure("unavailable", String(error)), missed: 0, restarts: 0 })
            }
        }
    }
}
