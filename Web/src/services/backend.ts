import { Session } from "./auth.js"
import { build } from "./build.js"
import { LiveCollection } from "./collection.js"
import { pendingStore } from "./persisted-writes.js"
import { loadOffline } from "./lazy-module.js"
import { failure, wait } from "./rejections.js"
import { isWaiting } from "./pending-writes.js"
import { OpenRoom } from "./room.js"
import { type Client, connect, type JSONCoder, Listeners } from "./trebuchet.js"
import type { Auth, PendingStore, Services, ServicesOptions } from "./types.js"

/** The milliseconds between two searches for writes of closed tabs. */
const adoptEvery = 30_000

/** A server with services: one connection, the signed-in user, and the open rooms and collections. */
export class Backend implements Services {
    readonly client: Client
    readonly auth: Auth
    /** The build identifier. Its name is not mangled, so that files of other versions can read it. */
    readonly build = build
    /** The number of connections so far; rooms and queries opened over an earlier one are closed. */
    _line = 0
    _isLive = false
    _isClosed = false
    /** The listeners that are called when a connection is made or lost. */
    readonly _changes = new Listeners()
    readonly _store: PendingStore | null | undefined
    readonly _json: JSONCoder
    private _session: Session
    private _rooms = new Map<string, OpenRoom>()
    private _collections = new Map<string, LiveCollection>()
    private _adopting: Promise<void> | undefined
    private _timer: any

    constructor(private _url: string, readonly _options: ServicesOptions) {
        const { storageKey: key = "trebuchet:" + _url, pending = pendingStore(key) } = _options
        this._store = pending
        this._json = _options.json ?? JSON
        this._session = new Session(this, _options, key)
        // The session creates its methods from tables.
        this.auth = this._session as unknown as Auth
        this.client = connect(_url, { ..._options, token: this._session._token })
        this.client.status.subscribe(() => {
            const isLive = this.client.status.getSnapshot().phase === "live"
            if (isLive === this._isLive) return
            this._isLive = isLive
            if (isLive) {
                this._line++
                this._session._connected()
                this._adopt()
            }
            this._changes.notify()
        })
        const look = (): void => {
            this._timer = setTimeout(look, adoptEvery)
            // The timer does not keep a Node process running.
            this._timer.unref?.()
            // This also runs without a connection, so that waiting writes are shown and counted.
            this._adopt()
        }
        look()
    }

    get _account(): string {
        return this._session._account
    }

    room(name: string, presence?: any): any {
        const known = this._rooms.get(name)
        if (known && presence !== undefined) known.set(presence)
        const room = known ?? new OpenRoom(this, name, presence ?? null, () => this._rooms.delete(name))
        this._rooms.set(name, room)
        return room
    }

    rooms(type: string, after: string | null = null, limit = 100): Promise<any> {
        return this.client.actor("room-lists/" + type).call("list(after:limit:)", [after, limit])
    }

    collection(name: string): any {
        const collection = this._collections.get(name) ?? new LiveCollection(this, name)
        this._collections.set(name, collection)
        return collection
    }

    close(): void {
        if (this._isClosed) return
        this._isClosed = true
        clearTimeout(this._timer)
        this._session._close()
        for (const client of [this.client, ...this._others]) client.close()
        for (const collection of this._collections.values()) collection._close()
        this._store?.close()
        this._changes.notify()
    }

    // Functions for the session

    _anonymous(): Client {
        const client = connect(this._url, this._options)
        this._others.add(client)
        return client
    }

    _leave(client: Client): void {
        client.close()
        this._others.delete(client)
    }

    async _sent(isLeaving = false): Promise<void> {
        const areWaiting = (): boolean =>
            [...this._collections.values()].some(({ _pending }) => _pending.some(isWaiting)) ||
            // Waiting publications of an anonymous user do not delay a sign-in: the room may be waiting for that sign-in.
            (!!this._account && [...this._rooms.values()].some(({ _publishing }) => _publishing))
        // The limits are 30 seconds with a connection, and 10 seconds without one.
        for (let [left, patience, before] = [30_000, 10_000, Date.now()]; left > 0 && (areWaiting() || (isLeaving && !this._isLive)); ) {
            await wait(20)
            // The elapsed time may exceed 20 ms: timers of a hidden page are late.
            const spent = Date.now() - before
            before += spent
            if (this._isLive) left -= spent
            else if (this._isClosed || (patience -= spent) < 0) throw failure("unavailable", "no connection")
        }
    }

    _accountChanged(before: string): void {
        // The reconnect precedes all actions of the new user.
        this.client.reconnect()
        for (const collection of this._collections.values()) collection._accountChanged(before)
    }

    /** Adopts the writes of closed tabs, and of this page before a reload. */
    private _adopt(): void {
        this._session._keepAgain()
        const store = this._store
        if (!store || this._adopting) return
        this._adopting = loadOffline()
            .then(({ adopt }) => adopt(this, store))
            .catch(() => {})
            .finally(() => (this._adopting = undefined))
    }

    /** The temporary clients. */
    private _others = new Set<Client>()
    /** The secrets of this tab, including those adopted from closed tabs. */
    readonly _mine = new Set<string>()
}
